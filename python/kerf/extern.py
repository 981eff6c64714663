"""The Python side of extern steps and of unusual tensors, called from the bindings off the usual path."""

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch._subclasses import FakeTensor

from kerf.errors import UserError

# Operators that torch's own function of the name reaches faster: a small convolution took 8 us by it and
# 12 us by the operator's builtin (alone; 20 and 27 in a graph of ten).
_FUNCTIONS = {
    "aten.convolution.default": "convolution",
    "aten._scaled_dot_product_flash_attention_for_cpu.default": "_scaled_dot_product_flash_attention_for_cpu",
}

# Their results carry a bit that DLPack does not, in the memory of their operand: made real at once.
_LAZY = ("aten._conj.default", "aten._neg_view.default")


def resolve(op: str) -> Callable[..., Any]:
    """The callable of an operator given as "aten.mm.default".

    The builtin below the OpOverload is taken where there is one: it saves a Python frame a call.

    Raises:
        UserError: this torch has no such operator.
    """
    namespace, _, rest = op.partition(".")
    name, _, overload = rest.rpartition(".")
    try:
        found = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except AttributeError as error:
        raise UserError(f"torch {torch.__version__} has no operator {op}") from error
    if op in _LAZY:
        return lambda tensor: copy_strided(found(tensor))
    return getattr(torch, _FUNCTIONS[op]) if op in _FUNCTIONS else getattr(found, "_op", found)


def copy_strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, shape, strides (overlaps included) and storage offset in memory of its own.

    AOTAutograd reads off a view of an argument where in the argument it lies; the copy must be no view.
    """
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    offset = tensor.storage_offset()
    memory = torch.empty(offset + extent, dtype=tensor.dtype)
    memory[offset:] = tensor.as_strided((extent,), (1,), offset)
    whole = memory.untyped_storage()
    return torch.empty(0, dtype=tensor.dtype).set_(whole, offset, tensor.shape, tensor.stride())


def plain_tensor(tensor: Any, position: int) -> torch.Tensor:
    """A CPU tensor with memory in place of argument `position` of a call, which is none.

    Raises:
        UserError: no such tensor exists; the message says why.
    """
    if not isinstance(tensor, torch.Tensor):
        raise UserError(f"argument {position} must be a tensor, not {type(tensor).__name__}")
    if isinstance(tensor, FakeTensor):
        raise UserError(f"argument {position} is a FakeTensor: a compiled graph runs on real tensors only")
    if tensor.device.type != "cpu":
        raise UserError(f"argument {position} is on {tensor.device}: this graph was compiled for the CPU")
    if tensor.layout != torch.strided:
        raise UserError(f"argument {position} has layout {tensor.layout}: only strided tensors can be passed")
    if tensor._is_zerotensor():
        return tensor.clone()
    if tensor.numel() and tensor.data_ptr() == 0:
        raise UserError(f"argument {position} has no memory (its storage was resized or freed)")
    raise UserError(f"argument {position} has dtype {tensor.dtype}, which this graph was not compiled for")


class PythonCall:
    """A step that is a Python callable rather than an operator: a higher-order one, or one with arguments
    that a plan cannot hold, such as complex numbers. Called with the step's tensors and sizes, in order.
    """

    def __init__(self, target: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """`args` and `kwargs` hold a Slot wherever a leaf goes."""
        self.target = target
        self.args = args
        self.kwargs = kwargs

    def __call__(self, *leaves: Any) -> Any:
        return self.target(*_fill(self.args, leaves), **_fill(self.kwargs, leaves))


class Slot:
    """Leaf `position` of a PythonCall."""

    def __init__(self, position: int) -> None:
        self.position = position

    def value(self, leaves: tuple[Any, ...]) -> Any:
        return leaves[self.position]


class ComputedSlot(Slot):
    """A number computed from integer leaves, such as the 1/s0 of a mean over a dynamic size."""

    def __init__(self, expr: Any, symbols: dict[Any, int], to: type) -> None:
        self.expr = expr
        self.symbols = symbols
        self.to = to

    def value(self, leaves: tuple[Any, ...]) -> Any:
        return self.to(self.expr.xreplace({s: sympy.Integer(leaves[i]) for s, i in self.symbols.items()}))


def _fill(template: Any, leaves: tuple[Any, ...]) -> Any:
    if isinstance(template, Slot):
        return template.value(leaves)
    if isinstance(template, (tuple, list)):
        return type(template)(_fill(item, leaves) for item in template)
    if isinstance(template, dict):
        return {key: _fill(item, leaves) for key, item in template.items()}
    return template
