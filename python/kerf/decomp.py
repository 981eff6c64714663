"""The decompositions that tracing applies.

Empty: composites reach the compiler whole and are lowered in C++, where the target and the neighbours are
known; what C++ has no lowering for runs as torch's own kernel, which beats its pieces run one by one.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp.decompositions import upsample_compute_output_size

# Torch takes these apart in Python before any table is asked. The pieces do not read at the positions that
# eager's kernels do: some of those copy where sizes are equal and halve where they double.
_RESAMPLED = [
    getattr(torch.ops.aten, f"{name}{dims}d")
    for name in ("upsample_nearest", "_upsample_nearest_exact")
    for dims in (1, 2, 3)
]
# The pieces of this one count what stands behind the first -1 of a row as labels.
_WHOLE = [*_RESAMPLED, torch.ops.aten.multilabel_margin_loss_forward]
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """The table given to AOTAutograd."""
    return {}


@contextlib.contextmanager
def whole_operators() -> Iterator[None]:
    """While tracing, operators that torch would take apart arrive whole."""
    overloads = [op.default for op in _WHOLE] + [op.vec for op in _RESAMPLED]
    kernels = [dict(overload.py_kernels) for overload in overloads]
    for key in _KEYS:
        for op in _WHOLE:
            op.default.py_kernels.pop(key, None)
        for op in _RESAMPLED:
            op.vec.py_kernels[key] = functools.partial(_by_size, op.default)
    _forget_dispatch(overloads)
    try:
        yield
    finally:
        for overload, kept in zip(overloads, kernels, strict=True):
            overload.py_kernels.clear()
            overload.py_kernels.update(kept)
        _forget_dispatch(overloads)


def _by_size(resample: Any, x: torch.Tensor, size: Any, factors: Any) -> torch.Tensor:
    """The overload `vec`, whose own kernel takes no symbolic sizes."""
    sizes = upsample_compute_output_size(x.size(), size, factors)
    return resample(x, sizes, *(factors or [None] * len(sizes)))


def _forget_dispatch(overloads: list[Any]) -> None:
    for overload in overloads:
        overload._dispatch_cache.clear()
