"""Floats computed from sizes, as values of a graph."""

import functools
from typing import Any

import sympy
from torch.utils._sympy.functions import FloatPow, FloatTrueDiv, IntTrueDiv, ToFloat

from kerf import _core
from kerf.sizes import NoIndexText, SizeTable

_SCALAR = ("float64", (), ())


def float_value(builder: Any, sizes: SizeTable, expr: sympy.Expr) -> Any:
    """A 0-d float64 Value, computed as Python computes.

    Raises:
        NoIndexText: `expr` has a function that is not among those that models use.
    """

    def call(op: str, *arguments: Any) -> Any:
        return builder.call(op, list(arguments), [], [_SCALAR], "", "")[0]

    def value(expr: sympy.Expr) -> Any:
        if expr.is_Float or expr.is_Rational:
            return call("aten.full.default", [], float(expr))
        if expr.is_integer:
            return call("aten.full.default", [], _core.Size(sizes.text(expr)))
        match expr:
            case ToFloat(args=(size,)):
                return value(size)
            case sympy.Add():
                return functools.reduce(lambda a, b: call("aten.add.Tensor", a, b, 1), map(value, expr.args))
            case sympy.Mul():
                return functools.reduce(lambda a, b: call("aten.mul.Tensor", a, b), map(value, expr.args))
            case FloatTrueDiv() | IntTrueDiv():
                return call("aten.div.Tensor", *map(value, expr.args))
            case FloatPow() | sympy.Pow():
                return call("aten.pow.Tensor_Tensor", *map(value, expr.args))
        if type(expr).__name__ == "OpaqueUnaryFn_sqrt":
            return call("aten.sqrt.default", value(expr.args[0]))
        raise NoIndexText(f"{type(expr).__name__} of sizes: {expr}")

    return value(expr)
