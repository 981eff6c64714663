"""Strides of what a forward graph saves for its backward: only the two graphs see it, so Kerf chooses them.

AOTAutograd reads the strides that were chosen from the tracing context, and gives the backward compiler fake
tensors with them.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext


def positions(gm: fx.GraphModule) -> frozenset[int]:
    """Results of a forward graph that are saved, of fixed sizes: AOTAutograd takes strides as integers."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None or context.output_strides is None:
        return frozenset()
    values = _results(gm)
    span = range(len(values))[context.fw_metadata.tensors_saved_for_backwards_slice]
    return frozenset(i for i in span if _is_static(values[i]))


def report_strides(gm: fx.GraphModule, compiled: Any) -> None:
    """Tells AOTAutograd which saved tensors are channels last now."""
    chosen = positions(gm)
    changed = compiled.channels_last
    if not any(changed[i] for i in chosen):
        return
    for i, value in enumerate(_results(gm)):
        strides = None
        if isinstance(value, torch.Tensor) and all(isinstance(s, int) for s in value.stride()):
            strides = _channels_last(value.shape) if i in chosen and changed[i] else value.stride()
        TracingContext.get().output_strides.append(strides)


def chosen_strides(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> dict[int, tuple[int, ...]]:
    """Strides of arguments of a backward graph that are not those that tracing saw, by position."""
    traced = [node.meta.get("val") for node in gm.graph.nodes if node.op == "placeholder"]
    return {
        position: value.stride()
        for position, (value, seen) in enumerate(zip(example_inputs, traced, strict=True))
        if _is_static(value) and _is_static(seen) and value.stride() != seen.stride()
    }


def _results(gm: fx.GraphModule) -> list[Any]:
    output = next(iter(reversed(gm.graph.nodes)))
    return [item.meta.get("val") if isinstance(item, fx.Node) else item for item in output.args[0]]


def _is_static(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and all(
        isinstance(s, int) for s in (*value.shape, *value.stride())
    )


def _channels_last(shape: torch.Size) -> tuple[int, ...]:
    _, c, h, w = shape
    return (h * w * c, 1, w * c, c)
