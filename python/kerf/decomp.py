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
_WHOLE = [
    getattr(torch.ops.aten, f"{name}{dims}d")
    for name in ("upsample_nearest", "_upsample_nearest_exact")
    for dims in (1, 2, 3)
]
# Of integers, these are eager's kernels in fixed point, which round otherwise than the pieces; of floats the
# pieces are right, and fuse.
_WHOLE_OF_INTEGERS = [
    getattr(torch.ops.aten, f"upsample_{name}")
    for name in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")
]
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """The table given to AOTAutograd."""
    return {}


@contextlib.contextmanager
def whole_operators() -> Iterator[None]:
    """While tracing, operators that torch would take apart arrive whole."""
    overloads = [overload for op in _WHOLE + _WHOLE_OF_INTEGERS for overload in (op.default, op.vec)]
    kernels = [dict(overload.py_kernels) for overload in overloads]
    for op in _WHOLE:
        for key in _KEYS:
            op.default.py_kernels.pop(key, None)
            op.vec.py_kernels[key] = functools.partial(_by_size, op.default)
    for op in _WHOLE_OF_INTEGERS:
        for key in _KEYS:
            op.default.py_kernels.pop(key, None)
            pieces = op.vec.py_kernels[key]
            op.vec.py_kernels[key] = functools.partial(_in_pieces, op.default, pieces)
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


def _in_pieces(resample: Any, pieces: Any, x: torch.Tensor, size: Any, align: bool, factors: Any) -> Any:
    """The overload `vec` of an operator that is taken apart for floats only."""
    if x.is_floating_point():
        return pieces(x, size, align, factors)
    return _by_size(lambda x, sizes, *scales: resample(x, sizes, align, *scales), x, size, factors)


def _forget_dispatch(overloads: list[Any]) -> None:
    for overload in overloads:
        overload._dispatch_cache.clear()
