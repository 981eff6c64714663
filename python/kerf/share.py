"""Equal nodes of a joint graph become one, so that a value is kept once and not under two names.

Models compute the same mask in every layer, tracing writes the same view in forward and backward, and
dropout of probability 0 is a copy.
"""

import operator
from typing import Any

import torch
from torch import fx

from kerf.eager_random import is_random


class _Unshared(Exception):
    """The node is equal to no other."""


def share_equal_nodes(joint: fx.GraphModule) -> None:
    """Replaces each node by the first one that computes the same, and mere copies by what they copy.

    Not replaced: random nodes and writes; what reads an argument that is written to; what shares memory with
    a result, as a caller may tell two results apart by writing to one. Checkpointed regions share nothing.
    """
    nodes = joint.graph.nodes
    written = {node.args[0] for node in nodes if _is_write(node)}
    results = {_memory(o) for o in next(iter(reversed(nodes))).all_input_nodes}
    first: dict[Any, fx.Node] = {}
    for node in nodes:
        if (
            node.op != "call_function"
            or _is_write(node)
            or is_random(node.target)
            or _memory(node) in results
        ):
            continue
        if not isinstance(node.target, torch._ops.OpOverload) and node.target is not operator.getitem:
            continue
        if not written.isdisjoint(node.all_input_nodes):
            continue
        try:
            key = _key(node)
        except _Unshared:
            continue
        same = first.setdefault(key, node)
        if _is_mere_copy(node) and _memory(node.args[0]) not in results:
            same = node.args[0]
        if same is not node:
            node.replace_all_uses_with(same)
            joint.graph.erase_node(node)


def drop_unread_operands(joint: fx.GraphModule) -> None:
    """Takes away what the gradient of a batch norm in training is given and does not read, so that no step
    keeps it: the running statistics.
    """
    target = torch.ops.aten.native_batch_norm_backward.default
    for node in joint.graph.find_nodes(op="call_function", target=target):
        if node.args[7]:
            node.args = (*node.args[:3], None, None, *node.args[5:])


def _is_write(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _is_mere_copy(node: fx.Node) -> bool:
    """Whether a node copies a tensor, without another layout or dtype; the graph is functional."""
    if node.target is not torch.ops.aten.clone.default or _checkpoint(node) != _checkpoint(node.args[0]):
        return False
    copied, source = node.meta["val"], node.args[0].meta["val"]
    return copied.stride() == source.stride() and not (source.is_conj() or source.is_neg())


def _checkpoint(node: fx.Node) -> Any:
    return node.meta.get("recompute"), node.meta.get("ac_graph_id")


def _memory(node: fx.Node) -> Any:
    """What identifies the storage of a tensor; the node itself for anything else."""
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else node


def _key(node: fx.Node) -> Any:
    marks = _checkpoint(node), node.meta.get("saved_tensor_with_no_vc_check", False)
    return node.target, _frozen(node.args), _frozen(node.kwargs), marks


def _frozen(value: Any) -> Any:
    """Equal only for arguments that mean the same: 0.0 is not -0.0, 1 neither 1.0 nor True."""
    match value:
        case fx.Node() | None | str() | torch.dtype() | torch.device():
            return value
        case torch.layout() | torch.memory_format():
            return value
        case bool() | int():
            return type(value), value
        case float():
            return value.hex()
        case tuple() | list():
            return tuple(_frozen(item) for item in value)
        case dict():
            return tuple((name, _frozen(item)) for name, item in value.items())
    raise _Unshared
