"""Option fallback_random: random values and the generator's state are eager's.

Random operators run as torch's own, in graph order, also where nobody reads what they draw. Dropout is
traced as native_dropout, which draws as eager's dropout does but rounds its scale otherwise, and draws for
p = 1, where eager does not: only its mask is taken. One thing stays as traced: bernoulli_ on memory that
is not row-major, which is traced as a draw in row-major order.
"""

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._inductor.config
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

_aten = torch.ops.aten
_DROPOUT = _aten.native_dropout.default
_DROPOUT_BACKWARD = _aten.native_dropout_backward.default


def is_random(target: Any) -> bool:
    """Whether an operator draws from a generator."""
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


@contextlib.contextmanager
def keep_draws(is_wanted: bool) -> Iterator[None]:
    """Tracing keeps draws that nobody reads; torch asks an option of Inductor whether it should."""
    with torch._inductor.config.patch(fallback_random=True) if is_wanted else contextlib.nullcontext():
        yield


def partition_draws(
    partition: Callable[..., tuple[fx.GraphModule, fx.GraphModule]],
    joint: fx.GraphModule,
    inputs: Any,
    **kwargs: Any,
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """`partition`, where draws of the forward are not drawn again by the backward graph."""
    scale_as_eager(joint)
    forward, backward = partition(joint, inputs, **kwargs)
    for node in reversed(backward.graph.nodes):
        if is_random(node.target) and not node.users:
            backward.graph.erase_node(node)
    return forward, backward


def scale_as_eager(gm: fx.GraphModule) -> None:
    """Gives eager's own arithmetic to every dropout whose mask only its gradient reads: another one is a
    native_dropout that the user called.
    """
    for dropout in gm.graph.find_nodes(op="call_function", target=_DROPOUT):
        x, p, train = dropout.args
        kept = [user for user in dropout.users if user.args[1] == 0]
        masks = [user for user in dropout.users if user.args[1] == 1]
        gradients = [user for mask in masks for user in mask.users]
        if train is not True or p == 0 or any(user.target is not _DROPOUT_BACKWARD for user in gradients):
            continue
        with gm.graph.inserting_after(dropout):
            mask = _insert(dropout, operator.getitem, dropout, 1, value=dropout.meta["val"][1])
        for result in kept:
            _replace(result, x, mask, p)
        for gradient in gradients:
            _replace(gradient, gradient.args[0], mask, p)
        for unused in [*masks, mask, dropout]:
            if not unused.users:
                gm.graph.erase_node(unused)


def _replace(node: fx.Node, x: fx.Node, mask: fx.Node, p: float) -> None:
    """`node` becomes x times the noise of a dropout, which is 0 or 1 / (1 - p), rounded."""
    value = node.meta["val"]
    with node.graph.inserting_before(node):
        if p < 1:
            x = _insert(node, _aten.mul.Tensor, x, mask, value=value)
        scaled = _insert(node, _aten.mul.Tensor, x, _scale(value.dtype, p), value=value)
    node.replace_all_uses_with(scaled)
    node.graph.erase_node(node)


def _insert(origin: fx.Node, target: Any, *args: Any, value: Any) -> fx.Node:
    inserted = origin.graph.call_function(target, args)
    inserted.meta = origin.meta | {"val": value}
    return inserted


@functools.cache
def _scale(dtype: torch.dtype, p: float) -> float:
    """What eager's dropout multiplies by."""
    with unset_fake_temporarily():
        return torch.ones(1, dtype=dtype).div_(1 - p).item() if p < 1 else 0.0
