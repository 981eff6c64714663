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
from torch._decomp import decomposition_table
from torch._decomp.decompositions import upsample_compute_output_size
from torch._guards import TracingContext
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensorMode

# Torch takes these apart in Python before any table is asked. The pieces do not read at the positions that
# eager's kernels do: some of those copy where sizes are equal and halve where they double.
_RESAMPLED = [
    getattr(torch.ops.aten, f"{name}{dims}d")
    for name in ("upsample_nearest", "_upsample_nearest_exact")
    for dims in (1, 2, 3)
]
# The pieces of this one count what stands behind the first -1 of a row as labels.
_WHOLE = [*_RESAMPLED, torch.ops.aten.multilabel_margin_loss_forward]
# Of integers, these are eager's kernels in fixed point, which round otherwise than the pieces; of floats the
# pieces are right, and fuse.
_WHOLE_OF_INTEGERS = [
    getattr(torch.ops.aten, f"upsample_{name}")
    for name in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")
]
# Overload -> the argument whose memory format the first result has in eager's kernels; tracing gives it that
# argument's strides, whatever they are.
_BATCH_NORMS = {
    torch.ops.aten._native_batch_norm_legit_functional.default: 0,
    torch.ops.aten._native_batch_norm_legit.no_stats: 0,
    torch.ops.aten._native_batch_norm_legit_no_training.default: 0,
    torch.ops.aten.native_batch_norm_backward.default: 1,
}
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """The table given to AOTAutograd."""
    return {}


@contextlib.contextmanager
def whole_operators() -> Iterator[None]:
    """While tracing, operators that torch would take apart arrive whole; batch norms have eager's strides."""
    overloads = [op.default for op in _WHOLE + _WHOLE_OF_INTEGERS]
    overloads += [op.vec for op in _RESAMPLED + _WHOLE_OF_INTEGERS]
    kernels = [dict(overload.py_kernels) for overload in overloads]
    for key in _KEYS:
        for op in _WHOLE:
            op.default.py_kernels.pop(key, None)
        for op in _RESAMPLED:
            op.vec.py_kernels[key] = functools.partial(_by_size, op.default)
    for op in _WHOLE_OF_INTEGERS:
        for key in _KEYS:
            op.default.py_kernels.pop(key, None)
            pieces = op.vec.py_kernels[key]
            op.vec.py_kernels[key] = functools.partial(_in_pieces, op.default, pieces)
    pieces_of_norms = {
        overload: decomposition_table[overload]
        for overload in _BATCH_NORMS
        if overload in decomposition_table
    }
    for overload, pieces in pieces_of_norms.items():
        decomposition_table[overload] = _in_memory_format(_BATCH_NORMS[overload], pieces)
    _forget_fakes()
    _forget_dispatch(overloads)
    try:
        yield
    finally:
        decomposition_table.update(pieces_of_norms)
        _forget_fakes()
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


def _in_memory_format(argument: int, pieces: Callable[..., Any]) -> Callable[..., Any]:
    """What tracing computes an operator's fake results with; its name and module matter to torch."""

    @functools.wraps(pieces)
    def computed(*args: Any, **kwargs: Any) -> Any:
        first, *others = pieces(*args, **kwargs)
        if first is not None:
            first = first.contiguous(memory_format=suggest_memory_format(args[argument]))
        return first, *others

    return computed


def _forget_fakes() -> None:
    """Drops batch norms from what fake tensors remember of earlier calls."""
    context = TracingContext.try_get()
    mode = context.fake_mode if context else None
    caches = [getattr(FakeTensorMode, "cache", {})]
    caches.append(getattr(mode and mode.shape_env, "fake_tensor_cache", {}))
    for cache in caches:
        for key in [key for key in cache if key.key[0] in _BATCH_NORMS]:
            del cache[key]


def _forget_dispatch(overloads: list[Any]) -> None:
    for overload in overloads:
        overload._dispatch_cache.clear()
