"""Sizes of a traced graph: its symbols, where a call reads them, and sympy expressions as index text."""

import operator
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.functions import (
    CeilDiv,
    CeilToInt,
    CleanDiv,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Mod,
    ModularIndexing,
    PowByNatural,
    PythonMod,
    ToFloat,
    TruncToInt,
)

from kerf import _core


class UnknownSize(Exception):
    """A size that no argument of the call determines, such as the number of nonzero elements."""


class NoIndexText(Exception):
    """A number computed from sizes by a function that is no index arithmetic, such as a power."""


def is_size(value: Any) -> bool:
    """An int or SymInt; bool is neither."""
    return isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool)


def hint_of(size: int | torch.SymInt) -> int | None:
    """The value while tracing; None where it depends on data."""
    return size if isinstance(size, int) else size.node.hint


class SizeTable:
    """The size symbols of one graph.

    A symbol is declared when an argument is exactly it: a dimension of a tensor, or a SymInt. A symbol that
    occurs only inside an argument `a*s + b` (a backward graph may be given 64*s0 alone) is solved for.
    """

    def __init__(self, builder: _core.GraphBuilder) -> None:
        self._builder = builder
        self._names: dict[sympy.Symbol, Any] = {}  # symbol -> text, or the expression it is solved as
        self._compounds: list[tuple[sympy.Expr, int, int, int | None]] = []
        self._texts: dict[sympy.Expr, str] = {}
        self._ones: dict[sympy.Expr, bool] = {}

    def add_argument(self, value: Any, position: int, dim: int) -> None:
        """Argument `position` holds SymInt `value` in dimension `dim`, or is it (dim -1)."""
        if not isinstance(value, torch.SymInt):
            return
        expr = value.node.expr
        if isinstance(expr, sympy.Symbol):
            if expr not in self._names:
                bounds = _bounds(expr, value.node.shape_env)
                self._declare(expr, expr.name, bounds, position, dim, hint_of(value))
        elif expr.free_symbols:
            self._compounds.append((expr, position, dim, hint_of(value)))

    def text(self, expr: sympy.Expr) -> str:
        """Index text of an expression.

        Raises:
            UnknownSize: it mentions a symbol that no argument determines.
            NoIndexText: it has a function that is no index arithmetic.
        """
        found = self._texts.get(expr)
        if found is None:
            found = self._texts[expr] = self._print(expr)
        return found

    def size(self, value: Any) -> Any:
        """An int, or a _core.Size."""
        if isinstance(value, int):
            return value
        expr = value.node.expr
        if not expr.is_Integer and not expr.is_Symbol and self._is_one(value):
            return 1
        return int(expr) if expr.is_Integer else _core.Size(self.text(expr))

    def _is_one(self, value: torch.SymInt) -> bool:
        """Whether a guard of tracing says so (say, s0 - (s0+1)//2 was broadcast); the core sees none."""
        expr = value.node.expr
        if expr not in self._ones:
            self._ones[expr] = statically_known_true(value == 1)
        return self._ones[expr]

    def sizes(self, values: Any) -> tuple[Any, ...]:
        return tuple(self.size(v) for v in values)

    def _declare(
        self,
        key: sympy.Expr,
        name: str,
        bounds: tuple[int | None, int | None],
        position: int,
        dim: int,
        hint: int | None,
    ) -> None:
        self._builder.add_size(name, *bounds, position, dim, hint)
        self._names[key] = name

    def _symbol(self, symbol: sympy.Symbol) -> str:
        if symbol not in self._names:
            self._solve(symbol)
        return self._names[symbol]

    def _solve(self, symbol: sympy.Symbol) -> None:
        """Declares t for an argument a*symbol + b and gives the symbol the text (t - b)//a."""
        for expr, position, dim, hint in self._compounds:
            rest = expr.subs(symbol, 0) if symbol in expr.free_symbols else None
            if rest is None or not rest.free_symbols <= self._names.keys():
                continue
            factor = sympy.expand(expr - rest) / symbol
            if not (factor.is_Integer and factor > 0):
                continue
            name = f"t_{symbol.name}"
            self._declare(sympy.Symbol(name, integer=True), name, (None, None), position, dim, hint)
            self._names[symbol] = f"(({name} - {self._print(rest)}) // {factor})"
            return
        raise UnknownSize(f"the size {symbol} depends on data: no argument of the call determines it")

    def _print(self, expr: sympy.Expr) -> str:
        match expr:
            case sympy.Integer():
                return str(expr)
            case sympy.Symbol():
                return self._symbol(expr)
            case sympy.Add():
                return f"({' + '.join(self._print(a) for a in expr.args)})"
            case sympy.Mul() if not any(a.is_Rational and not a.is_Integer for a in expr.args):
                return f"({' * '.join(self._print(a) for a in expr.args)})"
            case sympy.Pow(args=(base, exp)) | PowByNatural(args=(base, exp)) if (
                exp.is_Integer and 0 < exp <= 8
            ):
                return f"({' * '.join([self._print(base)] * int(exp))})"
            case FloorDiv(args=(a, b)) | CleanDiv(args=(a, b)):
                return f"({self._print(a)} // {self._print(b)})"
            case Mod(args=(a, b)) | PythonMod(args=(a, b)) | sympy.Mod(args=(a, b)):
                return f"({self._print(a)} % {self._print(b)})"
            case CeilDiv(args=(a, b)):
                return f"(({self._print(a)} + {self._print(b)} - 1) // {self._print(b)})"
            case FloorToInt(args=(quotient,)) if parts := _quotient(quotient):
                return f"({self._print(parts[0])} // {self._print(parts[1])})"
            case TruncToInt(args=(x,)) if (parts := _quotient(x)) and parts[0].is_nonnegative:
                return f"({self._print(parts[0])} // {self._print(parts[1])})"
            case CeilToInt(args=(quotient,)) if parts := _quotient(quotient):
                return f"(0 - (0 - {self._print(parts[0])}) // {self._print(parts[1])})"
            case ModularIndexing(args=(a, divisor, modulus)):
                return f"(({self._print(a)} // {self._print(divisor)}) % {self._print(modulus)})"
        nested = _nested_name(expr)
        if nested is None:
            raise NoIndexText(f"{type(expr).__name__} of sizes: {expr}")
        text = self._print(expr.args[-1])
        for argument in reversed(expr.args[:-1]):
            text = f"{nested}({self._print(argument)}, {text})"
        return text


def _quotient(expr: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr] | None:
    """The integers of a quotient of floats that stand for integers, or of a product with a short fraction."""
    match expr:
        case sympy.Mul(args=(sympy.Float() as factor, ToFloat(args=(size,)))):
            top, bottom = float(factor).as_integer_ratio()
            return (top * size, sympy.Integer(bottom)) if abs(top) < 2**20 else None  # no product rounds
    if not isinstance(expr, (FloatTrueDiv, IntTrueDiv)):
        return None
    a, b = (
        x.args[0] if isinstance(x, ToFloat) else sympy.nsimplify(x) if x.is_Float else x for x in expr.args
    )
    return (a, b) if a.is_integer and b.is_integer else None


def _nested_name(expr: sympy.Expr) -> str | None:
    """min or max for sympy's and torch's own Min and Max, which are different classes."""
    return {"Min": "min", "Max": "max"}.get(type(expr).__name__)


def _bounds(symbol: sympy.Symbol, shape_env: Any) -> tuple[int | None, int | None]:
    """What tracing knows of a symbol; None for an absent bound."""
    known = shape_env.var_to_range.get(symbol)
    if known is None:
        return None, None
    return _finite(known.lower), _finite(known.upper)


def _finite(bound: Any) -> int | None:
    value = operator.index(int(bound)) if getattr(bound, "is_Integer", False) else None
    return value if value is not None and abs(value) < 2**62 else None
