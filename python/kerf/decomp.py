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
from torch._prims_common import compute_elementwise_output_strides, suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensorMode

# Torch takes these apart in Python before any table is asked. The pieces do not read at the positions that
# eager's kernels do: some of those copy where sizes are equal and halve where they double.
_RESAMPLED = [
    getattr(torch.ops.aten, f"{name}{dims}d")
    for name in ("upsample_nearest", "_upsample_nearest_exact")
    for dims in (1, 2, 3)
]
# Tracing finds no shapes of these when sizes are symbols.
_GRADIENTS = [
    overload
    for op in _RESAMPLED
    if (overload := getattr(torch.ops.aten, f"{op.__name__}_backward").default) not in decomposition_table
]
# The pieces of this one count what stands behind the first -1 of a row as labels.
_WHOLE = [*_RESAMPLED, torch.ops.aten.multilabel_margin_loss_forward]
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
    """While tracing, operators that torch would take apart arrive whole, and results have eager's strides."""
    overloads = [op.default for op in _WHOLE + _WHOLE_OF_INTEGERS]
    overloads += [op.vec for op in _RESAMPLED + _WHOLE_OF_INTEGERS]
    overloads += _GEOMETRIES
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
    traced = {o: decomposition_table[o] for o in _GEOMETRIES if o in decomposition_table}
    for overload, pieces in traced.items():
        decomposition_table[overload] = _with_geometry(_GEOMETRIES[overload], pieces)
    decomposition_table.update(dict.fromkeys(_GRADIENTS, _like_input))
    # Tracing of sizes that do not change asks these before the table.
    for overload, geometry in _GEOMETRIES.items():
        if DispatchKey.Meta in overload.py_kernels:
            meta = overload.py_kernels[DispatchKey.Meta]
            overload.py_kernels[DispatchKey.Meta] = _with_geometry(geometry, meta)
    _forget_fakes()
    _forget_dispatch(overloads)
    try:
        yield
    finally:
        decomposition_table.update(traced)
        for overload in _GRADIENTS:
            del decomposition_table[overload]
        _forget_fakes()
        for overload, kept in zip(overloads, kernels, strict=True):
            overload.py_kernels.clear()
            overload.py_kernels.update(kept)
        _forget_dispatch(overloads)


def _by_size(resample: Any, x: torch.Tensor, size: Any, factors: Any) -> torch.Tensor:
    """The overload `vec`, whose own kernel takes no symbolic sizes."""
    sizes = upsample_compute_output_size(x.size(), size, factors)
    return resample(x, sizes, *(factors or [None] * len(sizes)))


def _like_input(gradient: torch.Tensor, _: Any, input_size: Any, *factors: Any) -> torch.Tensor:
    return gradient.new_empty(input_size)


def _in_pieces(resample: Any, pieces: Any, x: torch.Tensor, size: Any, align: bool, factors: Any) -> Any:
    """The overload `vec` of an operator that is taken apart for floats only."""
    if x.is_floating_point():
        return pieces(x, size, align, factors)
    return _by_size(lambda x, sizes, *scales: resample(x, sizes, align, *scales), x, size, factors)


def _with_geometry(geometry: Callable[..., torch.Tensor], pieces: Callable[..., Any]) -> Callable[..., Any]:
    """What tracing computes an operator's fake results with; its name and module matter to torch."""

    @functools.wraps(pieces)
    def computed(*args: Any, **kwargs: Any) -> Any:
        results = pieces(*args, **kwargs)
        if isinstance(results, torch.Tensor):
            return geometry(results, *args)
        first, *others = results
        return first if first is None else geometry(first, *args), *others

    return computed


def _in_memory_format(argument: int, result: torch.Tensor, *args: Any) -> torch.Tensor:
    return result.contiguous(memory_format=suggest_memory_format(args[argument]))


def _contiguous(result: torch.Tensor, *_: Any) -> torch.Tensor:
    return result.contiguous()


def _like_first(result: torch.Tensor, x: torch.Tensor, *_: Any) -> torch.Tensor:
    return torch.empty_like(x) if result.shape == x.shape else result


def _like_operands(result: torch.Tensor, *args: Any) -> torch.Tensor:
    tensors = torch.broadcast_tensors(*(a for a in args if isinstance(a, torch.Tensor)))
    return result.new_empty_strided(result.shape, compute_elementwise_output_strides(*tensors))


_CHANNELS = functools.partial(_in_memory_format, 0)
# Overload -> the first result in the strides that eager's kernels give it, where tracing finds others:
# those of an argument, whatever they are, or those of the last of several.
_GEOMETRIES: dict[torch._ops.OpOverload, Callable[..., torch.Tensor]] = {
    torch.ops.aten._native_batch_norm_legit_functional.default: _CHANNELS,
    torch.ops.aten._native_batch_norm_legit.no_stats: _CHANNELS,
    torch.ops.aten._native_batch_norm_legit_no_training.default: _CHANNELS,
    torch.ops.aten.native_batch_norm_backward.default: functools.partial(_in_memory_format, 1),
    torch.ops.aten.native_group_norm.default: _CHANNELS,
    torch.ops.aten.roll.default: _CHANNELS,
    torch.ops.aten.channel_shuffle.default: _CHANNELS,
    torch.ops.aten.max_unpool2d.default: _CHANNELS,
    torch.ops.aten.log_sigmoid_forward.default: _contiguous,
    torch.ops.aten.nll_loss2d_forward.default: _contiguous,
    torch.ops.aten.isin.Tensor_Tensor: _contiguous,
    torch.ops.aten.binary_cross_entropy.default: _like_first,
    torch.ops.aten.copysign.Tensor: _like_operands,
    torch.ops.aten.xlogy.Tensor: _like_operands,
    torch.ops.aten.special_xlog1py.default: _like_operands,
    torch.ops.aten.floor_divide.default: _like_operands,
}


def _forget_fakes() -> None:
    """Drops these operators from what fake tensors remember of earlier calls."""
    context = TracingContext.try_get()
    mode = context.fake_mode if context else None
    caches = [getattr(FakeTensorMode, "cache", {})]
    caches.append(getattr(mode and mode.shape_env, "fake_tensor_cache", {}))
    for cache in caches:
        for key in [key for key in cache if key.key[0] in _GEOMETRIES]:
            del cache[key]


def _forget_dispatch(overloads: list[Any]) -> None:
    for overload in overloads:
        overload._dispatch_cache.clear()
