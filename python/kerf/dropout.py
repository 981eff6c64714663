"""Dropout in joint graphs: the mask as a function of a seed; eight bytes a step are kept for all masks.

One seed is drawn a call of the forward graph. Element i of mask n is kept if the uniform number of seed and
counter n * 2**40 + i is below 1 - p, in the forward pass and, where the cut says so, in the backward pass
again. The operators are compiled; their functions here serve graphs that run as torch runs them, with equal
numbers.
"""

import math

import torch
from torch import fx

from kerf.recipes import Chain

_library = torch.library.Library("kerf", "DEF")
_library.define("draw_seed() -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
_library.define("dropout_mask(Tensor seed, int number, SymInt[] size, float p) -> Tensor")

_MULTIPLIER, _WEYL, _WORD = 0xD256D193, 0x9E3779B9, 0xFFFFFFFF


def _draw_seed() -> torch.Tensor:
    return torch.randint(-(2**63), 2**63 - 1, (), dtype=torch.int64)


def _dropout_mask(seed: torch.Tensor, number: int, size: list[int], p: float) -> torch.Tensor:
    counter = torch.arange(math.prod(size)) + (number << 40)
    halves = seed.item() & (2**64 - 1)
    key = (halves & _WORD) ^ ((halves >> 32) * 0x85EBCA6B & _WORD)
    uniform = (_philox(counter, key) >> 8).to(torch.float32) * 2.0**-24
    return (uniform < 1 - p).view(size)


def _philox(counter: torch.Tensor, key: int) -> torch.Tensor:
    """The first word of philox2x32-10; words of 32 bits in int64, products by halves of 16 bits."""
    first, second = counter & _WORD, counter >> 32
    for _ in range(10):
        low, high = (first & 0xFFFF) * _MULTIPLIER, (first >> 16) * _MULTIPLIER
        first = ((high + (low >> 16)) >> 16) ^ key ^ second
        second = ((high << 16) + low) & _WORD
        key = (key + _WEYL) & _WORD
    return first


_library.impl("draw_seed", _draw_seed, "CompositeExplicitAutograd")
_library.impl("dropout_mask", _dropout_mask, "CompositeExplicitAutograd")


def replace_dropouts(joint: fx.GraphModule) -> None:
    """Replaces the dropouts of `joint` by a seed, masks and products."""
    dropouts = [node for node in joint.graph.nodes if _drops(node)]
    if not dropouts:
        return
    seed = _insert_seed(dropouts[0])
    for number, node in enumerate(dropouts):
        x, p, _ = node.args
        at = Chain(node)
        sizes = [
            size if isinstance(size, int) else at.insert(torch.ops.aten.sym_size.int, (x, dim), size)
            for dim, size in enumerate(x.meta["val"].shape)
        ]
        traced = node.meta["val"][1]
        mask = at.insert(torch.ops.kerf.dropout_mask.default, (seed, number, sizes, p), traced)
        kept = at(torch.ops.aten.mul.Tensor, x, mask)
        results = [at(torch.ops.aten.mul.Tensor, kept, 1 / (1 - p)), mask]
        for item in list(node.users):
            item.replace_all_uses_with(results[item.args[1]])
            joint.graph.erase_node(item)
        joint.graph.erase_node(node)


def _drops(node: fx.Node) -> bool:
    if node.target is not torch.ops.aten.native_dropout.default:
        return False
    _, p, train = node.args
    return bool(train) and 0 < p < 1


def _insert_seed(first: fx.Node) -> fx.Node:
    graph = first.graph
    start = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(start):
        seed = graph.call_function(torch.ops.kerf.draw_seed.default)
    with first.meta["val"][0].fake_mode:
        seed.meta["val"] = torch.empty((), dtype=torch.int64)
    seed.meta["partitioner_tag"] = "is_forward"
    return seed
