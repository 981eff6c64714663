"""Small models of three families train two steps as in eager, judged by a float64 referee.

The second step's loss depends on the first one's gradients and on nothing else that could differ.
"""

import copy
import sys
from collections.abc import Callable
from pathlib import Path

import kerf
import pytest
import torch
from numeric import assert_close

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from models import Workload, build, gpt2, llama, vit  # noqa: E402

FAMILIES: dict[str, Callable[[], Workload]] = {
    "gpt2": lambda: gpt2(layers=2, hidden=64, length=24),
    "llama": lambda: llama(layers=2, hidden=64, length=24),
    "vit": lambda: vit(layers=2, hidden=64, size=64),
}


def _train(workload: Workload, backend: str | None, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Both losses, and the gradients of the first step."""
    model = copy.deepcopy(workload.model).to(dtype)
    inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in workload.inputs.items()}
    call = torch.compile(model, backend=backend) if backend else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    seen = {}
    for step in range(2):
        optimizer.zero_grad()
        loss = workload.loss(call, inputs)
        loss.backward()
        seen[f"loss {step}"] = loss.detach()
        if step == 0:
            seen |= {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
    return seen


@pytest.mark.parametrize("family", FAMILIES)
def test_train(family):
    workload = build(FAMILIES[family])
    eager = _train(workload, None, torch.float32)
    ours = _train(workload, "kerf", torch.float32)
    assert_close(ours, [eager], _train(workload, None, torch.float64))
    kinds = [c.kind for c in kerf.compilations()]
    assert kinds == ["forward", "backward"]
    assert all(c.kernels for c in kerf.compilations())
