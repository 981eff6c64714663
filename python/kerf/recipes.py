"""Results of whole calls that one pointwise pass computes again: of a batch norm from its statistics.

The core decides where the backward pass does so.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def recipe_of(node: fx.Node) -> list[fx.Node]:
    """What `node` can be computed again from; empty if it has no recipe."""
    made = _match(node)
    return [operand for operand in made[1] if operand is not None] if made else []


def apply_recipes(
    joint: fx.GraphModule, repeated: list[fx.Node], forward: set[fx.Node], outputs: int
) -> None:
    """Gives the backward pass nodes of its own for what it computes again by a recipe, and for what it
    repeats after that; gradients read those.

    Args:
        joint: the joint graph.
        repeated: what the core's cut repeats.
        forward: nodes that the forward pass computes.
        outputs: how many results of the joint graph are the forward pass's.
    """
    twins = {node: _build(node, recipe) for node in repeated if (recipe := _match(node))}
    if not twins:
        return
    again = set(repeated)
    for node in list(joint.graph.nodes):
        if node in twins or twins.keys().isdisjoint(node.all_input_nodes):
            continue
        if node.op == "output":
            results = list(node.args[0])
            results[outputs:] = [twins.get(r, r) if r is not None else r for r in results[outputs:]]
            node.args = (type(node.args[0])(results),)
        elif node in again:
            with joint.graph.inserting_after(node):
                twins[node] = joint.graph.node_copy(node, lambda operand: twins.get(operand, operand))
        elif node not in forward:
            for operand in node.all_input_nodes:
                if operand in twins:
                    node.replace_input_with(operand, twins[operand])


_Recipe = tuple[Callable[..., fx.Node], list[fx.Node | None]]


def _match(node: fx.Node) -> _Recipe | None:
    """The function that builds the node again, and its operands."""
    if node.target is not operator.getitem or node.args[1] != 0 or "recompute" in node.meta:
        return None
    call = node.args[0]
    if not isinstance(call, fx.Node) or call.target not in _RECIPES:
        return None
    return _RECIPES[call.target](call)


def _match_batch_norm(call: fx.Node) -> _Recipe | None:
    x, weight, bias = call.args[:3]
    training = call.args[5 if call.target is _BATCH_NORM else 3]
    mean, inverse = _item(call, 1), _item(call, 2)
    if not training or mean is None or inverse is None:
        return None
    return _build_batch_norm, [x, weight, bias, mean, inverse]


def _build_batch_norm(
    x: fx.Node, weight: fx.Node | None, bias: fx.Node | None, mean: fx.Node, inverse: fx.Node, at: "Chain"
) -> fx.Node:
    dtype = x.meta["val"].dtype
    wide = mean.meta["val"].dtype
    shape = [1, -1] + [1] * (x.meta["val"].dim() - 2)

    def channel(value: fx.Node) -> fx.Node:
        return at(aten.view.default, value, shape)

    y = x if dtype == wide else at(aten._to_copy.default, x, dtype=wide)
    y = at(aten.mul.Tensor, at(aten.sub.Tensor, y, channel(mean)), channel(inverse))
    if weight is not None:
        y = at(aten.mul.Tensor, y, channel(weight))
    if bias is not None:
        y = at(aten.add.Tensor, y, channel(bias))
    return y if y.meta["val"].dtype == dtype else at(aten._to_copy.default, y, dtype=dtype)


_BATCH_NORM = aten._native_batch_norm_legit_functional.default

_RECIPES: dict[Any, Callable[[fx.Node], _Recipe | None]] = {
    _BATCH_NORM: _match_batch_norm,
    aten._native_batch_norm_legit.no_stats: _match_batch_norm,
}


def _item(call: fx.Node, position: int) -> fx.Node | None:
    for user in call.users:
        if user.target is operator.getitem and user.args[1] == position:
            return user
    return None


def _build(node: fx.Node, recipe: _Recipe) -> fx.Node:
    build, operands = recipe
    call = node.args[0]
    for operand in operands:  # statistics stand before what is built after the first result
        if operand is not None and operand.target is operator.getitem and operand.args[0] is call:
            call.append(operand)
    return build(*operands, Chain(node))


class Chain:
    """Appends calls behind a node, one after the other; they carry its marks and traced values."""

    _MARKS = ("stack_trace", "partitioner_tag", "recompute", "ac_graph_id")

    def __init__(self, node: fx.Node) -> None:
        self.node = node
        self.last = node

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        traced = target(*(a.meta["val"] if isinstance(a, fx.Node) else a for a in args), **kwargs)
        return self.insert(target, args, traced, **kwargs)

    def insert(self, target: Any, args: tuple[Any, ...], traced: Any, **kwargs: Any) -> fx.Node:
        graph = self.node.graph
        with graph.inserting_after(self.last):
            self.last = graph.call_function(target, args, kwargs)
        self.last.meta = {mark: self.node.meta[mark] for mark in self._MARKS if mark in self.node.meta}
        self.last.meta["val"] = traced
        return self.last
