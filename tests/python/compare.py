"""Runs a function in eager, under Kerf and in float64 on equal inputs; judges everything a user can see."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from numeric import assert_close
from torch.utils import _pytree as pytree


def compare(
    function: Callable[..., Any],
    *inputs: Any,
    train: bool = False,
    dynamic: bool | None = None,
    calls: list[tuple[Any, ...]] | None = None,
    options: dict[str, Any] | None = None,
    signed_zeros: bool = True,
) -> None:
    """Compares results, gradients, inputs after the call (mutations), and the geometry of the results.

    Args:
        function: a function or module; a module's parameters take part in `train`.
        inputs: of the first call.
        train: calls backward on the sum of all floating results that require a gradient.
        dynamic: of torch.compile.
        calls: inputs of further calls of the same compiled function.
        options: of the backend.
        signed_zeros: zeros must have eager's signs.
    """
    torch._dynamo.reset()
    compiled_function, double_function = copy.deepcopy(function), _double(copy.deepcopy(function))
    compiled = torch.compile(compiled_function, backend="kerf", dynamic=dynamic, options=options)
    for arguments in [inputs, *(calls or [])]:
        eager = _observe(function, function, _clone(arguments), train)
        referee = _observe(double_function, double_function, _double(_clone(arguments)), train)
        got = _observe(compiled, compiled_function, _clone(arguments), train)
        assert got["structure"] == eager["structure"]
        assert got["geometry"] == eager["geometry"], (got["geometry"], eager["geometry"])
        assert_close(got["tensors"], [eager["tensors"]], referee["tensors"], signed_zeros=signed_zeros)


def _observe(call: Callable[..., Any], owner: Any, inputs: Any, train: bool) -> dict[str, Any]:
    results, structure = pytree.tree_flatten(call(*inputs))
    tensors = {f"result {i}": r for i, r in enumerate(results) if isinstance(r, torch.Tensor)}
    geometry = [
        (tuple(r.shape), r.stride(), r.requires_grad) if isinstance(r, torch.Tensor) else r for r in results
    ]
    leaves = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    if train:
        loss = sum(r.sum() for r in tensors.values() if r.is_floating_point() and r.requires_grad)
        loss.backward()
        parameters = dict(owner.named_parameters()) if isinstance(owner, torch.nn.Module) else {}
        named = {f"input {i}": leaf for i, leaf in enumerate(leaves)} | parameters
        tensors |= {f"gradient of {n}": t.grad for n, t in named.items() if t.grad is not None}
        for parameter in parameters.values():
            parameter.grad = None
    tensors |= {f"input {i} after": leaf for i, leaf in enumerate(leaves)}
    if isinstance(owner, torch.nn.Module):
        tensors |= {f"buffer {name} after": buffer for name, buffer in owner.named_buffers()}
    return {
        "structure": str(structure),
        "geometry": geometry,
        "tensors": {name: tensor.detach().clone() for name, tensor in tensors.items()},
    }


def _clone(inputs: Any) -> Any:
    """Copies with the same strides, so that the sides never share memory."""

    def clone(tensor: torch.Tensor) -> torch.Tensor:
        copied = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        return copied.copy_(tensor.detach()).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, clone, inputs)


def _double(value: Any) -> Any:
    """Modules and floating tensors in float64."""
    if isinstance(value, torch.nn.Module):
        return value.double()

    def to_double(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor.detach().double().requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, to_double, value)
