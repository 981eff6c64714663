"""Level 2: the kernel in triton's interpreter, at cut extents, against the expected values."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from buffers import POINTER_TYPES, Buffer, numbers, rounded
from cut_run import CutRun
from triton.language.extra.ascend import libdevice
from triton.runtime import interpreter

# The interpreter has no form of the device's own functions.
_DEVICE_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "__hmf_atanf": np.arctan,
    "__hmf_isinf": np.isinf,
    "__hmf_isnan": np.isnan,
    "__hmf_log1pf": np.log1p,
    "__hmf_powf": np.power,
    "__hmf_recipf": np.reciprocal,
    "__hmf_reluf": lambda x: np.maximum(x, np.float32(0)),
    "__hmf_roundf": lambda x: np.trunc(x) + np.copysign(np.abs(x - np.trunc(x)) >= 0.5, x),
    "__hmf_tanf": np.tan,
    "__hmf_tanhf": np.tanh,
}


def _device_function(
    library: str, path: str, symbol: str, arguments: list[Any], result: Any, pure: bool
) -> Any:
    if symbol not in _DEVICE_FUNCTIONS:
        raise NotImplementedError(f"{symbol} has no form on the host")
    data = _DEVICE_FUNCTIONS[symbol](*(argument.data for argument in arguments))
    return interpreter.TensorHandle(data, result.scalar)


def _cast(source: Any, result: Any) -> Any:
    """The interpreter's own cuts bits off where the result is bf16; compilers and devices round."""
    element = result.scalar
    if element == tl.bfloat16 and source.dtype.scalar == tl.float32:
        return interpreter.TensorHandle(rounded(source.data, "bf16"), element)
    if element == tl.float32 and source.dtype.scalar == tl.bfloat16:
        return interpreter.TensorHandle(numbers(source.data, "bf16").astype(np.float32), element)
    return interpreter.InterpreterBuilder.cast_impl(interpreter.interpreter_builder, source, result)


def _binary(left: Any, right: Any, function: Callable[..., np.ndarray]) -> Any:
    """The interpreter's own takes bf16 for the whole numbers that it is stored as."""
    if left.dtype.scalar == tl.bfloat16:
        raise NotImplementedError("the interpreter cannot compute in bf16: cast to float32 first")
    return interpreter.InterpreterBuilder.binary_op(interpreter.interpreter_builder, left, right, function)


def _patch() -> None:
    builder = interpreter.interpreter_builder
    builder.create_extern_elementwise = _device_function
    builder.cast_impl = _cast
    builder.binary_op = _binary
    builder.create_mod = lambda left, right: _binary(left, right, np.fmod)
    builder.get_int1_ty = lambda: tl.int1
    interpreter._patch_builtin(libdevice, builder)


def _pointer(buffer: Buffer) -> Any:
    """What the interpreter asks of a tensor."""
    tensor = SimpleNamespace(dtype=POINTER_TYPES[buffer.dtype], device="cpu", data_ptr=lambda: buffer.begin)
    tensor.cpu = lambda: tensor
    tensor.to = lambda device: tensor
    tensor.data = SimpleNamespace(copy_=lambda source: None)
    return tensor


def check(function: Any, request: dict[str, Any]) -> dict[str, Any]:
    run = CutRun(request["kernel"], request["values"])
    _patch()
    function[(run.programs,)](*map(_pointer, run.buffers), *run.sizes, **run.constants)
    return run.judge()
