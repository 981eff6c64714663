"""A joint graph of AOTAutograd, described to the core, which decides what the forward pass keeps.

Nothing is decided here: each node is told with its operator, operands, bytes and marks (partition/joint.h).
"""

import operator
from typing import Any

import torch
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from kerf import _core
from kerf.eager_random import is_random
from kerf.errors import KerfError
from kerf.recipes import recipe_of

_Source, _Form, _Joint = _core.JointSource, _core.JointForm, _core.JointGraph

_SIZE_TYPES = (torch.SymInt, torch.SymFloat, torch.SymBool)

# Reads of a tensor's geometry.
_GEOMETRY = {
    torch.ops.aten.sym_size.int,
    torch.ops.aten.sym_stride.int,
    torch.ops.aten.sym_numel.default,
    torch.ops.aten.sym_storage_offset.default,
}

_REPEATED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)

# Bytes of a dimension that tracing knows nothing of.
_UNKNOWN_SIZE = 4096


class NotDescribable(KerfError):
    """The graph has something that the core's cut knows nothing of."""


def describe(joint: fx.GraphModule, num_fwd_outputs: int, static_inputs: set[int]) -> _core.JointGraph:
    """The description; node i of it is the i-th node of the graph (the last, the output, is not in it).

    Raises:
        NotDescribable: with what it is.
    """
    described = _core.JointGraph()
    numbers: dict[fx.Node, int] = {}
    arguments = 0
    for node in joint.graph.nodes:
        if node.op == "output":
            outputs = [numbers[o] if isinstance(o, fx.Node) else None for o in _leaves(node.args[0])]
            described.forward_outputs = [o for o in outputs[:num_fwd_outputs] if o is not None]
            described.backward_outputs = [o for o in outputs[num_fwd_outputs:] if o is not None]
            continue
        numbers[node] = len(numbers)
        source, flags = _source(node), _flags(node)
        if source is _Source.argument:
            flags |= _Joint.STATIC if arguments in static_inputs else 0
            arguments += 1
        form, byte_count = _form(node)
        operands = [numbers[operand] for operand in node.all_input_nodes]
        region = node.meta.get("ac_graph_id", -1)
        described.add(source, form, _operator(node), operands, byte_count, flags, region)
    for node, number in numbers.items():
        if recipe := recipe_of(node):
            described.set_recipe(number, [numbers[operand] for operand in recipe])
    return described


def is_repeated(node: fx.Node) -> bool:
    """Whether the user's checkpoint policy computes the node again in the backward pass."""
    return node.meta.get("recompute") in _REPEATED


def _leaves(outputs: Any) -> list[Any]:
    return [leaf for o in outputs for leaf in _leaves(o)] if isinstance(outputs, (tuple, list)) else [outputs]


def _source(node: fx.Node) -> Any:
    match node.op:
        case "placeholder":
            return _Source.tangent if "tangents" in node.target or "bwd_" in node.target else _Source.argument
        case "get_attr":
            return _Source.constant
        case "call_function":
            return _Source.call
    raise NotDescribable(f"a node of kind {node.op}")


def _form(node: fx.Node) -> tuple[Any, int]:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return _Form.tensor, _bytes(value)
    if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
        return _Form.size, 8
    if isinstance(value, (tuple, list)):
        return _Form.other, sum(_bytes(item) for item in value if isinstance(item, torch.Tensor))
    if value is not None and not isinstance(value, (*_SIZE_TYPES, bool, float)):
        raise NotDescribable(f"a value of type {type(value).__name__}")
    return _Form.other, 0


def _bytes(tensor: torch.Tensor) -> int:
    count = tensor.dtype.itemsize
    for size in tensor.shape:
        count *= size if type(size) is int else _hint(size)
    return count


def _hint(size: Any) -> int:
    node = size.node
    return int(node.hint) if node.has_hint() else _UNKNOWN_SIZE


def _operator(node: fx.Node) -> str:
    target = node.target
    if node.op != "call_function":
        return ""
    if target is operator.getitem and isinstance(node.args[0].meta.get("val"), (tuple, list)):
        return "getitem"
    if isinstance(target, torch._ops.OpOverload) and target not in _GEOMETRY:
        if target.namespace == "_c10d_functional":
            raise NotDescribable("a collective operation")
        if isinstance(node.meta.get("val"), (torch.SymFloat, torch.SymBool)):
            return "size"  # cannot be kept: read again
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        if target is torch.ops.higher_order.with_effects:
            raise NotDescribable("an operator with effects")
        return ""
    return "size" if isinstance(node.meta.get("val"), (*_SIZE_TYPES, int)) else ""


def _flags(node: fx.Node) -> int:
    flags = 0
    meta = node.meta
    tag = meta.get("partitioner_tag")
    if isinstance(node.target, torch._ops.OpOverload):
        if node.target._schema.is_mutable:
            backward = tag in ("is_backward", "must_be_in_backward")
            flags |= _Joint.MUTATES | (_Joint.BACKWARD_ONLY if backward else _Joint.FORWARD_ONLY)
        if is_random(node.target):
            flags |= _Joint.RANDOM
    if tag == "is_backward":
        flags |= _Joint.TRACED_BACKWARD
    elif tag == "must_be_in_backward":
        flags |= _Joint.BACKWARD_ONLY
    elif tag == "must_be_in_forward":
        flags |= _Joint.FORWARD_ONLY
    policy = meta.get("recompute")
    if policy is CheckpointPolicy.MUST_SAVE:
        flags |= _Joint.MUST_KEEP
    elif policy in _REPEATED:
        flags |= _Joint.MUST_REPEAT
    if meta.get("has_backward_hook", False):
        flags |= _Joint.BACKWARD_HOOK
    return flags
