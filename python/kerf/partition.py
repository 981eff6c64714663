"""The cut of a joint graph into forward and backward, and traced metadata that must be right before it."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition

_PARTITIONERS: dict[str, Callable[..., Any]] = {
    "default": default_partition,
    "min_cut": min_cut_rematerialization_partition,
}

_NORMS = {
    torch.ops.aten.native_layer_norm.default,
    torch.ops.aten.native_group_norm.default,
    torch.ops.aten.native_batch_norm.default,
    torch.ops.aten._native_batch_norm_legit_functional.default,
    torch.ops.aten._native_batch_norm_legit.no_stats,
    torch.ops.aten._native_batch_norm_legit_no_training.default,
    torch.ops.aten._batch_norm_with_update_functional.default,
}


def partition(
    name: str, joint: fx.GraphModule, inputs: Any, **kwargs: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Cuts `joint` by the partitioner `name` of options.PARTITIONERS."""
    correct_side_dtypes(joint)
    return _PARTITIONERS[name](joint, inputs, **kwargs)


def correct_side_dtypes(gm: fx.GraphModule) -> None:
    """Sets the dtypes that eager's kernels give to saved statistics.

    Tracing says that the mean and rstd of a norm over bf16 with f32 weights are bf16; the kernels return f32.
    The backward graph would be compiled for the wrong dtype.
    """
    for node in gm.graph.nodes:
        if node.op != "call_function" or node.target not in _NORMS:
            continue
        value = node.meta["val"]
        if value[0].dtype not in (torch.float16, torch.bfloat16):
            continue
        operands = tuple(_dtype_of(argument) for argument in node.args)
        actual = _side_dtypes(node.target, operands)
        node.meta["val"] = tuple(_of_dtype(v, dtype) for v, dtype in zip(value, actual, strict=True))
        for user in node.users:
            user.meta["val"] = node.meta["val"][user.args[1]]


def _dtype_of(argument: Any) -> torch.dtype | None:
    value = argument.meta["val"] if isinstance(argument, fx.Node) else None
    return value.dtype if isinstance(value, torch.Tensor) else None


def _of_dtype(value: Any, dtype: torch.dtype) -> Any:
    return value if value.dtype == dtype else torch.empty_like(value, dtype=dtype)


@functools.cache
def _side_dtypes(target: Any, operands: tuple[torch.dtype | None, ...]) -> tuple[torch.dtype, ...]:
    """What eager returns for operands of these dtypes, asked of eager on the smallest tensors."""
    names = [argument.name for argument in target._schema.arguments]
    with torch._subclasses.fake_tensor.unset_fake_temporarily(), torch.no_grad():
        arguments = [
            _NUMBERS[name] if name in _NUMBERS else _tensor(name, dtype)
            for name, dtype in zip(names, operands, strict=True)
        ]
        return tuple(result.dtype for result in target(*arguments))


def _tensor(name: str, dtype: torch.dtype | None) -> torch.Tensor | None:
    """A batch of two rows with one channel, or that channel's parameter; None for an absent one."""
    return None if dtype is None else torch.ones((2, 1) if name == "input" else (1,), dtype=dtype)


# Arguments of the norms that are no tensors, for the smallest input.
_NUMBERS = {
    "normalized_shape": [1],
    "N": 2,
    "C": 1,
    "HxW": 1,
    "group": 1,
    "training": True,
    "momentum": 0.1,
    "eps": 1e-5,
}
