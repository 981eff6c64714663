"""The cut of a joint graph into forward and backward, and traced metadata that must be right before it."""

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._functorch import partitioners

from kerf import debug
from kerf.dropout import replace_dropouts
from kerf.eager_random import is_random
from kerf.joint import NotDescribable, describe, is_repeated
from kerf.options import Options
from kerf.recipes import apply_recipes
from kerf.share import drop_unread_operands, share_equal_nodes

_TORCHS: dict[str, Callable[..., Any]] = {
    "default": partitioners.default_partition,
    "min_cut": partitioners.min_cut_rematerialization_partition,
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
    options: Options, graph: str, joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **kwargs: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Cuts `joint` by the partitioner that the options name.

    What the core's cut cannot do is done by torch's default partitioner; the record has the reason.
    """
    correct_side_dtypes(joint)
    start = time.perf_counter()
    reason, kept_bytes = "", None
    by = options.partition
    try:
        if by == "kerf":
            if not options.fallback_random:
                replace_dropouts(joint)
            static = set(kwargs.get("static_lifetime_input_indices") or ())
            modules, kept_bytes = _cut(joint, num_fwd_outputs, static)
    except NotDescribable as error:
        by, reason = "default", str(error)
        debug.log.info("%s is cut by torch's default partitioner: %s", graph, reason)
    if by != "kerf":
        modules = _TORCHS[by](joint, inputs, num_fwd_outputs=num_fwd_outputs, **kwargs)
    seconds = time.perf_counter() - start
    debug.record_partition(debug.Partition(graph, by, reason, len(joint.graph.nodes), kept_bytes, seconds))
    return modules


def _cut(
    joint: fx.GraphModule, num_fwd_outputs: int, static: set[int]
) -> tuple[tuple[fx.GraphModule, fx.GraphModule], int]:
    """The two graphs, and the bytes kept besides parameters.

    Raises:
        NotDescribable: the core finds no cut, or this torch splits joint graphs by another function.
    """
    drop_unread_operands(joint)
    joint.graph.eliminate_dead_code()
    share_equal_nodes(joint)
    cut = describe(joint, num_fwd_outputs, static).cut()
    if isinstance(cut, str):
        raise NotDescribable(cut)
    nodes = list(joint.graph.nodes)
    kept = [nodes[i] for i in cut.kept]
    repeated = [nodes[i] for i in cut.repeated]
    sizes = [node for node in kept if not isinstance(node.meta["val"], torch.Tensor)]
    tensors = [node for node in kept if isinstance(node.meta["val"], torch.Tensor)]
    apply_recipes(joint, repeated, {nodes[i] for i in cut.forward} | set(kept), num_fwd_outputs)
    forward, backward = _split(joint, tensors, sizes, num_fwd_outputs)
    if any(is_random(node.target) and is_repeated(node) for node in repeated):
        forward, backward = partitioners.functionalize_rng_ops(joint, forward, backward, len(sizes))
    saved = {node.name for node in tensors if node.op != "placeholder"}
    for node in backward.graph.find_nodes(op="placeholder"):
        node.meta["kerf_ends"] = node.name in saved
    repeat_late(backward)
    return (forward, backward), cut.kept_bytes


def _split(
    joint: fx.GraphModule, tensors: list[fx.Node], sizes: list[fx.Node], num_fwd_outputs: int
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Splits by torch's own function, which knows what AOTAutograd expects; it puts all sizes that the
    backward graph needs into `sizes`.
    """
    try:
        split = partitioners._extract_fwd_bwd_modules
        return split(joint, tensors, saved_sym_nodes=sizes, num_fwd_outputs=num_fwd_outputs)
    except (AttributeError, TypeError) as error:
        raise NotDescribable(f"torch {torch.__version__} splits joint graphs otherwise: {error}") from error


def repeat_late(backward: fx.GraphModule) -> None:
    """Moves what does not need a gradient next to its first reader that does.

    Values computed again would else all exist at the start of the backward pass.
    """
    graph = backward.graph
    output = next(iter(reversed(graph.nodes)))
    gradients = {node for node in graph.nodes if node.op == "placeholder" and "tangents" in node.target}
    order: dict[fx.Node, None] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            order[node] = None
        elif node is output or node.is_impure() or any(o in gradients for o in node.all_input_nodes):
            gradients.add(node)
            _append_with_operands(node, order)
    for node in list(order):
        if node is not output:
            output.prepend(node)
    backward.recompile()


def _append_with_operands(node: fx.Node, order: dict[fx.Node, None]) -> None:
    """Appends `node` after those of its operands that are not in `order` yet."""
    stack = [node]
    while stack:
        missing = [operand for operand in stack[-1].all_input_nodes if operand not in order]
        if missing:
            stack.extend(reversed(missing))
        else:
            order.setdefault(stack.pop(), None)


def correct_side_dtypes(gm: fx.GraphModule) -> None:
    """Sets the dtypes that eager's kernels give to saved statistics.

    Tracing says that the mean and rstd of a norm over bf16 with f32 weights are bf16; the kernels return f32.
    The backward graph would be compiled for the wrong dtype.
    """
    for node in gm.graph.nodes:
        if node.target is torch.ops.aten.detach.default:
            node.meta["val"] = _of_dtype(node.meta["val"], node.args[0].meta["val"].dtype)
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
