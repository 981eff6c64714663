"""Random functions under Kerf and in eager: whatever a caller can see must be the same.

KERF_SEEDS=5000 runs that many, KERF_SEED=123 one. A failure prints its function.

What a float may differ by: the rule of numeric.py, where the runs of eager include runs with an ulp of noise
on every operation that may round differently. A tensor that this noise leaves alone must be equal to the bit.
A function whose integers, booleans or NaN change under noise says nothing, and is skipped.
"""

import contextlib
import functools
import math
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numeric
import pytest
import torch
from random_functions import RandomFunction, random_function
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree

SEEDS = (
    [int(os.environ["KERF_SEED"])]
    if "KERF_SEED" in os.environ
    else range(int(os.environ.get("KERF_SEEDS", 100)))
)
UNSTABLE = 1e5  # effect of an ulp of noise, in ulp, from which a function says nothing


@pytest.mark.parametrize("seed", SEEDS)
def test_random_function(seed: int) -> None:
    function = random_function(seed)
    reason = check(function)
    assert not reason, f"{reason}\n{function}"


class Observation:
    """What a caller sees of one call, and afterwards."""

    def __init__(self, call: Callable[..., Any], inputs: list[torch.Tensor], train: bool) -> None:
        memories = [_memory_of(i) for i in inputs]
        self.results, self.structure = pytree.tree_flatten(call(*inputs))
        tensors = [r for r in self.results if isinstance(r, torch.Tensor)]
        self.kinds = [_kind(r) for r in self.results]
        self.strides = [_strides(t) for t in tensors]
        self.inputs = [(tuple(i.shape), i.stride(), i.storage_offset()) for i in inputs]
        self.aliases = _aliases(tensors, inputs)
        self.values = {f"result {n}": t.detach().clone() for n, t in enumerate(tensors)}
        self.values |= {f"memory of input {n}": m.clone() for n, m in enumerate(memories)}
        self.gradients = _gradients(tensors, inputs) if train else {}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return self.values | self.gradients


def check(function: RandomFunction) -> str:
    """Why Kerf is wrong; empty if it is right, or if torch's own tracing is wrong already."""
    reason = failure(function, "kerf")
    return reason if reason and not failure(function, "aot_eager") else ""


def failure(function: RandomFunction, backend: str) -> str:
    """Where a backend differs from eager; empty if it does not, or if the function says nothing."""
    torch._dynamo.reset()
    compiled = torch.compile(function.eager(), backend=backend, dynamic=function.dynamic)
    held: list[Observation] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in [0, 0, *range(1, len(function.sizes))]:
            eager = observe_eager(function, call)
            if eager is None:
                return ""
            try:
                got = Observation(compiled, function.inputs(call), function.train)
            except Exception as error:
                return f"call {call} raises {type(error).__name__}: {error}"
            reason = difference(got, *eager) or stride_difference(got, eager[0], function, call)
            if reason:
                return f"call {call}: {reason}"
            held.append(got)
    return "" if all(map(_is_unchanged, held)) else "a later call changed the results of an earlier one"


def observe_eager(
    function: RandomFunction, call: int
) -> tuple[Observation, list[Observation], Observation] | None:
    """Eager, eager with noise, and the referee; None for a function that says nothing."""
    inputs, train = functools.partial(function.inputs, call), function.train
    try:
        eager = Observation(function.eager(), inputs(), train)
        noisy = [Observation(function.noisy(_noise(seed)), inputs(), train) for seed in range(3)]
        with _default_dtype(torch.float64):
            referee = Observation(function.referee(), list(map(_double, inputs())), train)
    except (RuntimeError, IndexError):
        return None  # the sizes of a second call, a backward that eager refuses, dtypes of the referee
    return (eager, noisy, referee) if all(_is_stable(eager, other) for other in noisy) else None


def stride_difference(got: Observation, eager: Observation, function: RandomFunction, call: int) -> str:
    """Strides are those of eager, or those that tracing says, which is not always what eager's kernels do."""
    if got.strides == eager.strides:
        return ""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        inputs = [mode.from_tensor(i) for i in function.inputs(call)]
        results = pytree.tree_leaves(function.eager()(*inputs))
        traced = [_strides(r) for r in results if isinstance(r, torch.Tensor)]
    return "" if got.strides == traced else f"strides {got.strides} for {eager.strides}"


def difference(got: Observation, eager: Observation, noisy: list[Observation], referee: Observation) -> str:
    for what in ("structure", "kinds", "inputs", "aliases"):
        if getattr(got, what) != getattr(eager, what):
            return f"{what}: {getattr(got, what)} for {getattr(eager, what)}"
    if got.gradients.keys() != eager.gradients.keys():
        return f"{sorted(got.gradients)} for {sorted(eager.gradients)}"
    for name, value in eager.values.items():
        exact = all(_equal(run.values[name], value) for run in noisy)
        if exact and not _equal(got.values[name], value):
            return f"{name} is {got.values[name]} for exactly {value}"
    runs = [run.tensors for run in (eager, *noisy)]
    verdicts = numeric.judge(got.tensors, runs, referee.tensors)
    failed = [v for v in verdicts if v.reason and not _is_error_of_referee(v, eager)]
    return "; ".join(
        f"{v.name}: {v.reason}\n{got.tensors[v.name]}\nfor {eager.tensors[v.name]}" for v in failed
    )


def _is_error_of_referee(verdict: numeric.Verdict, eager: Observation) -> bool:
    """In float64 eager is its own referee: its sums walk at random, by an eps for every term."""
    value = eager.tensors[verdict.name]
    if value.dtype != torch.float64 or not torch.isfinite(value).any():
        return False
    terms = max(tensor.numel() for tensor in eager.tensors.values())
    size = value[torch.isfinite(value)].abs().max()
    return bool(verdict.error <= 4 * math.sqrt(terms) * torch.finfo(torch.float64).eps * size)


def _is_stable(eager: Observation, noisy: Observation) -> bool:
    """Whether noise changes no integer, bool, NaN or infinity, and floats by a part only."""
    return all(_is_near(value, noisy.tensors[name]) for name, value in eager.tensors.items())


def _is_near(value: torch.Tensor, noisy: torch.Tensor) -> bool:
    if not value.is_floating_point():
        return torch.equal(value, noisy)
    finite = torch.isfinite(value)
    if not _equal(value.masked_fill(finite, 0), noisy.masked_fill(finite, 0)):
        return False
    change, size = ((t[finite].double().abs().max() if finite.any() else 0) for t in (value - noisy, value))
    return bool(change <= UNSTABLE * torch.finfo(value.dtype).eps * size)  # not if noise gave NaN


def _equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """To the bit, but for NaN's payload and the signs of zeros."""
    return torch.equal(first, second) or (
        first.is_floating_point()
        and torch.equal(first.isnan(), second.isnan())
        and torch.equal(first.nan_to_num(0.0, *_INF), second.nan_to_num(0.0, *_INF))
    )


_INF = (float("inf"), -float("inf"))


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _noise(run: int) -> Callable[[Any], Any]:
    """Multiplies by 1 - eps, 1 or 1 + eps, in the gradient too; zeros, NaN and infinities stay."""
    generator = torch.Generator().manual_seed(run)

    def noise(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        steps = torch.randint(-1, 2, value.shape, generator=generator).double()
        return value * (1 + steps * torch.finfo(value.dtype).eps).to(value.dtype)

    return noise


def _kind(result: Any) -> Any:
    return (
        (result.dtype, tuple(result.shape), result.requires_grad)
        if isinstance(result, torch.Tensor)
        else result
    )


def _strides(tensor: torch.Tensor) -> list[int]:
    """The strides that mean something."""
    return [
        stride
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        if size > 1 and tensor.numel()
    ]


def _memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """All elements of the tensor's storage."""
    memory = tensor.detach()
    size = memory.untyped_storage().nbytes() // memory.element_size()
    return memory.as_strided((size,), (1,), 0)


def _aliases(results: list[torch.Tensor], inputs: list[torch.Tensor]) -> list[str]:
    """Per result: the same object as an input or an earlier result, the same memory, or nothing of these."""
    seen = [(f"input {n}", i) for n, i in enumerate(inputs)]
    found = []
    for n, result in enumerate(results):
        same = [name for name, other in seen if other is result]
        memory = [name for name, other in seen if _pointer(other) == _pointer(result) != 0]
        found.append(f"{same} in memory of {memory}")
        seen.append((f"result {n}", result))
    return found


def _pointer(tensor: torch.Tensor) -> int:
    """Where its memory is; 0 where it has no elements, of which nobody can tell."""
    return tensor.untyped_storage().data_ptr() if tensor.numel() else 0


def _gradients(results: list[torch.Tensor], inputs: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    outputs = [r for r in results if r.requires_grad]
    wanted = {n: i for n, i in enumerate(inputs) if i.requires_grad}
    if not outputs or not wanted:
        return {}
    generator = torch.Generator().manual_seed(0)
    tangents = [torch.randn(r.shape, generator=generator, dtype=torch.float64).to(r.dtype) for r in outputs]
    grads = torch.autograd.grad(outputs, list(wanted.values()), tangents, allow_unused=True)
    return {f"gradient of input {n}": g for n, g in zip(wanted, grads, strict=True) if g is not None}


def _double(tensor: torch.Tensor) -> torch.Tensor:
    """In float64, with the same geometry in memory of the same number of elements."""
    if not tensor.is_floating_point():
        return tensor
    memory = _memory_of(tensor).double()
    moved = memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return moved.requires_grad_(tensor.requires_grad)


def _is_unchanged(observation: Observation) -> bool:
    tensors = [r for r in observation.results if isinstance(r, torch.Tensor)]
    return all(_equal(t.detach(), observation.values[f"result {n}"]) for n, t in enumerate(tensors))
