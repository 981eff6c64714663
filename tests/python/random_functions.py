"""Seeded random torch functions as source text, with the arguments to call them on.

A function is grown a statement at a time: an expression is drawn from `random_expressions`, run in eager, and
kept if eager accepts it and its values are of use. So whatever comes out is a function that eager runs, and
what it does is text that can be read, printed and cut down.

Not drawn: statements whose result eager leaves open (random numbers, NaN cast to an integer, the order of
writes to one place), and branches on data.
"""

import dataclasses
import random
import re
from collections.abc import Callable
from typing import Any

import random_expressions
import torch

LARGEST = 40_000  # elements of a value
GREATEST = 3e4  # magnitude of a finite value; larger ones soon are infinite everywhere

FLOATS = (torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int64, torch.int32, torch.uint8)


@dataclasses.dataclass(frozen=True)
class Argument:
    """How one argument is made.

    Attributes:
        name: in the function's source.
        shape: names of sizes, or "1".
        dtype: of the tensor.
        layout: how it lies in its memory, a key of LAYOUTS.
        special: NaN, infinities and negative zeros are among the values.
        trained: requires a gradient.
    """

    name: str
    shape: tuple[str, ...]
    dtype: torch.dtype
    layout: str
    special: bool
    trained: bool


@dataclasses.dataclass(frozen=True)
class Statement:
    """A line of the function; `inexact` where two right implementations may differ in the last bits."""

    target: str
    expression: str
    operands: tuple[str, ...]
    inexact: bool

    def text(self) -> str:
        return f"{self.target} = {self.expression}" if self.target else self.expression

    def noisy_text(self) -> str:
        if not self.inexact:
            return self.text()
        names = ", ".join(self.operands)
        noisy = ", ".join(f"noise({name})" for name in self.operands)
        return f"{self.target} = noise((lambda {names}: {self.expression})({noisy}))"


@dataclasses.dataclass(frozen=True)
class RandomFunction:
    """A function, and the sizes of its calls: two for dynamic ones."""

    seed: int
    arguments: tuple[Argument, ...]
    statements: tuple[Statement, ...]
    results: str
    sizes: tuple[dict[str, int], ...]
    dynamic: bool
    train: bool

    def source(self, *, noisy: bool = False) -> str:
        lines = [s.noisy_text() if noisy else s.text() for s in self.statements]
        names = ", ".join(a.name for a in self.arguments)
        return "\n    ".join([f"def f({names}):", *lines, f"return {self.results}\n"])

    def eager(self) -> Callable[..., Any]:
        return _define(self.source())

    def noisy(self, noise: Callable[[Any], Any]) -> Callable[..., Any]:
        """The function with `noise` on operands and results of all inexact statements."""
        return _define(self.source(noisy=True), noise=noise)

    def referee(self) -> Callable[..., Any]:
        """The function with float64 in place of every floating dtype that its source names."""
        source = re.sub(r"torch\.(float32|float16|bfloat16)\b", "torch.float64", self.source())
        return _define(re.sub(r"\.(float|half)\(\)", ".double()", source))

    def inputs(self, call: int) -> list[torch.Tensor]:
        """Fresh arguments of call number `call`, equal whenever called."""
        generator = torch.Generator().manual_seed(self.seed * 10 + call)
        return [make_tensor(a, self.sizes[call], generator) for a in self.arguments]

    def __str__(self) -> str:
        kinds = [
            f"# {a.name}: {str(a.dtype)[6:]}[{', '.join(a.shape)}] {a.layout}"
            f"{' special' if a.special else ''}{' trained' if a.trained else ''}"
            for a in self.arguments
        ]
        head = f"# seed {self.seed}, sizes {self.sizes}, dynamic {self.dynamic}, train {self.train}"
        return "\n".join([head, *kinds, self.source()])


def random_function(seed: int) -> RandomFunction:
    return _Growth(seed).function()


def make_tensor(argument: Argument, sizes: dict[str, int], generator: torch.Generator) -> torch.Tensor:
    shape = [sizes.get(name, 1) for name in argument.shape]
    values = _values(argument, shape, generator)
    tensor = LAYOUTS[argument.layout](values)
    return tensor.requires_grad_(argument.trained)


def _values(argument: Argument, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    dtype = argument.dtype
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.6
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -5
        return torch.randint(low, 9, shape, generator=generator).to(dtype)
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    if argument.special:
        marks = torch.randint(0, 24, shape, generator=generator)
        for mark, value in enumerate([float("nan"), float("inf"), -float("inf"), -0.0, 0.0]):
            values[marks == mark] = value
    return values.to(dtype)


def _in_memory(values: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    return memory.copy_(values)


def _transposed(values: torch.Tensor) -> torch.Tensor:
    if values.dim() < 2:
        return values
    return values.transpose(0, -1).contiguous().transpose(0, -1)


def _channels_last(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous(memory_format=torch.channels_last) if values.dim() == 4 else values


def _offset(values: torch.Tensor) -> torch.Tensor:
    memory = torch.ones(values.numel() + 5, dtype=values.dtype)[3 : 3 + values.numel()]
    return _in_memory(values, memory.view(values.shape))


def _strided(values: torch.Tensor) -> torch.Tensor:
    """Every second element, and every second row if there are some."""
    steps = [2] * min(values.dim(), 2)
    shape = list(values.shape)
    for dim, step in enumerate(steps, values.dim() - len(steps)):
        shape[dim] = shape[dim] * step + 1
    memory = torch.ones(shape, dtype=values.dtype)
    for dim, step in enumerate(steps, values.dim() - len(steps)):
        memory = memory.narrow(dim, 1, memory.shape[dim] - 1)
        memory = memory[(slice(None),) * dim + (slice(None, None, step),)]
    return _in_memory(values, memory)


def _expanded(values: torch.Tensor) -> torch.Tensor:
    """The first row in the place of all rows."""
    return values[:1].clone().expand(values.shape) if values.dim() and values.shape[0] else values


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda values: values,
    "transposed": _transposed,
    "channels_last": _channels_last,
    "offset": _offset,
    "strided": _strided,
    "expanded": _expanded,
}


def _define(source: str, **names: Any) -> Callable[..., Any]:
    space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, **names}
    exec(compile(source, "<random function>", "exec"), space)
    return space["f"]


class _Growth:
    """Draws a function: `values` holds what eager computed for every name so far."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        rng = self.rng
        self.train = rng.random() < 0.4
        self.dynamic = rng.random() < 0.25
        self.sizes = self.draw_sizes()
        self.arguments = [self.draw_argument(name) for name in "abcd"[: rng.randint(1, 4)]]
        generator = torch.Generator().manual_seed(seed * 10)
        self.values = {a.name: make_tensor(a, self.sizes[0], generator) for a in self.arguments}
        self.statements: list[Statement] = []

    def draw_sizes(self) -> tuple[dict[str, int], ...]:
        rng = self.rng

        def draw() -> int:
            if rng.random() < 0.04:
                return rng.choice([0, 1])
            if rng.random() < 0.1:
                return rng.choice([31, 64, 100, 129])
            return rng.choice([2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 19])

        first = {name: draw() for name in "ABC"}
        if not self.dynamic:
            return (first,)
        # Sizes 0 and 1 are never dynamic; equal sizes would be one symbol.
        first = {"A": rng.choice([2, 5, 8]), "B": rng.choice([3, 7, 16]), "C": rng.choice([4, 9, 17])}
        return (first, {name: size + rng.choice([1, 2, 5]) for name, size in first.items()})

    def draw_argument(self, name: str) -> Argument:
        rng = self.rng
        shape = rng.choice(
            [
                "A",
                "B",
                "AB",
                "AB",
                "AB",
                "BA",
                "CAB",
                "CAB",
                "CAB",
                "1B",
                "A1",
                "ABC",
                "BCAB",
                "CA1",
                "AA",
                "",
            ]
        )
        dtype = rng.choice(FLOATS) if rng.random() < 0.7 else rng.choice([*INTEGERS, torch.bool])
        layout = rng.choice(list(LAYOUTS)) if rng.random() < 0.4 else "contiguous"
        special = dtype.is_floating_point and not self.train and rng.random() < 0.2
        trained = self.train and dtype.is_floating_point and rng.random() < 0.8
        return Argument(name, tuple(shape), dtype, layout, special, trained)

    def function(self) -> RandomFunction:
        rng = self.rng
        wanted = rng.randint(3, 15)
        for _ in range(20 * wanted):
            if len(self.statements) == wanted:
                break
            self.grow()
        return RandomFunction(
            self.seed,
            tuple(self.arguments),
            tuple(self.statements),
            self.draw_results(),
            self.sizes,
            self.dynamic,
            self.train,
        )

    def grow(self) -> None:
        draw = random_expressions.Draw(self.rng, self.values)
        try:
            expression, inexact = draw.expression()
        except random_expressions.NothingFits:
            return
        operands = tuple(dict.fromkeys(draw.used))
        if draw.in_place:
            if self.run(expression, operands) is not None:
                self.statements.append(Statement("", expression, operands, False))
            return
        value = self.run(expression, operands)
        if isinstance(value, torch.Tensor) and self.is_useful(value, operands):
            name = f"t{len(self.statements)}"
            self.values[name] = value
            self.statements.append(Statement(name, expression, operands, inexact))

    def run(self, expression: str, operands: tuple[str, ...]) -> Any:
        space = {"torch": torch, "F": torch.nn.functional} | {n: self.values[n] for n in operands}
        try:
            value = eval(expression, space)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return None
        return value

    def is_useful(self, value: torch.Tensor, operands: tuple[str, ...]) -> bool:
        if value.numel() > LARGEST or value.is_complex():
            return False
        if not value.numel():
            return self.rng.random() < 0.3 or any(not self.values[n].numel() for n in operands)
        finite = torch.isfinite(value)
        if float(value.detach().double().abs()[finite].amax() if finite.any() else 0) > GREATEST:
            return False
        was_finite = all(torch.isfinite(self.values[n]).all() for n in operands)
        return bool(finite.all()) or not was_finite or self.rng.random() < 0.1

    def draw_results(self) -> str:
        """Values that nobody read, then any others."""
        rng = self.rng
        text = " ".join(s.expression for s in self.statements)
        unread = [s.target for s in self.statements if s.target and not re.search(rf"\b{s.target}\b", text)]
        results = rng.sample(unread, min(len(unread), rng.randint(2, 7)))
        results += rng.choices(list(self.values), k=rng.choice([0, 0, 0, 1, 2]) + (not results))
        if rng.random() < 0.1:
            results.append(rng.choice([f"{results[0]}.reshape(-1)", f"{results[0]}[None]", "None"]))
        return f"({', '.join(results)},)"
