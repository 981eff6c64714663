"""Kernels of random functions for Ascend NPUs, by their values (docs/npu_check.md)."""

import sys
from pathlib import Path

import pytest
import torch
from kerf.offline.compile import compile_for
from random_functions import random_function

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from kerf_npu_check import environment  # noqa: E402
from kerf_npu_check.check import check_all  # noqa: E402
from kerf_npu_check.kernel_file import find_kernel_files  # noqa: E402

ABSENT = sorted(environment.missing("L2b"))
installed = pytest.mark.skipif(bool(ABSENT), reason=f"not run ({environment.INSTALL_LINE}): {ABSENT}")


def faults(folder: Path) -> list[str]:
    """Of every kernel file there: linalg on the host, as it is and as the device rewrites it."""
    reports = check_all(find_kernel_files([folder]), ["L0", "L2b"], [], 2, lambda report: None)
    answers = [(r.kernel.path.name, run, a) for r in reports for level, run, a in r.flat() if level == "L2b"]
    assert answers
    return [f"{name}: {run}: {a['message']}" for name, run, a in answers if a["verdict"] != "ok"]


@installed
def test_random_functions(tmp_path):
    kernels = 0
    for seed in range(6):
        function = random_function(seed)
        print(seed, function)
        plan = compile_for(function.eager(), tuple(function.inputs(0)), target="npu:910B3")
        kernels += len(plan.kernels)
        if plan.save(tmp_path / str(seed)):
            assert faults(tmp_path / str(seed)) == []
    assert kernels > 5


@installed
@pytest.mark.parametrize(
    ("dtype", "through"),
    [(torch.float32, torch.int8), (torch.bfloat16, torch.int32), (torch.float16, torch.int32)],
)
def test_casts_to_integers_and_back_lose_their_digits(tmp_path, dtype, through):
    """bishengir leaves such a pair of casts out."""
    plan = compile_for(
        lambda x: (20 * x).to(through).to(dtype), (torch.randn(100, dtype=dtype),), target="npu:910B3"
    )
    assert plan.save(tmp_path)
    assert faults(tmp_path) == []
