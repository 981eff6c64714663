"""Single kernels: Kerf beside TorchInductor and eager, in cache and from memory, f32 and bf16.

    benchmarks/kernels.py --rounds 30              the whole table
    benchmarks/kernels.py --kernel softmax

A call of a compiled function is timed, so its host overhead is in the time; a case makes tensors large enough
that this is small. Rounds alternate between the backends. `of copy` is the rate of Kerf's kernel (bytes that
the algorithm must read and write, by seconds) as a share of that of a plain copy of as many bytes,
`y.copy_(x)`, measured in the same rounds.
"""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Annotated, Any

import kerf
import numpy as np
import torch
import torch.nn.functional as F
import typer
from rich.console import Console
from rich.table import Table
from run import paired_ratio

Function = Callable[..., Any]

IN_CACHE = 128  # rows: 0.4 MB of f32 in a row-wise case
FROM_MEMORY = 32768  # rows: 100 MB
WIDTH = 768


@dataclasses.dataclass(frozen=True)
class Case:
    """A function of tensors.

    Attributes:
        make: (rows, dtype) -> inputs.
        moved: tensors of the inputs' largest size that the algorithm must read or write.
    """

    function: Function
    make: Callable[[int, torch.dtype], tuple[Any, ...]]
    moved: int


def _rows(count: int, *vectors: str) -> Callable[[int, torch.dtype], tuple[Any, ...]]:
    """`count` matrices of rows, then vectors of the width."""

    def make(rows: int, dtype: torch.dtype) -> tuple[Any, ...]:
        matrices = [torch.randn(rows, WIDTH).to(dtype) for _ in range(count)]
        return (*matrices, *(torch.randn(WIDTH).to(dtype) for _ in vectors))

    return make


def _with_statistics(rows: int, dtype: torch.dtype) -> tuple[Any, ...]:
    grad, x, weight, bias = _rows(2, "weight", "bias")(rows, dtype)
    _, mean, rstd = torch.native_layer_norm(x, (WIDTH,), weight, bias, 1e-5)
    return grad, x, mean, rstd, weight, bias


def _images(rows: int, dtype: torch.dtype) -> tuple[Any, ...]:
    """Channels last, as convolutions give them: 64 channels, rows * WIDTH elements in all."""
    side = math.isqrt(rows * WIDTH // 64 // 8)
    x = torch.randn(8, 64, side, side).to(dtype, memory_format=torch.channels_last)
    return (x, torch.randn(64), torch.randn(64), torch.zeros(64), torch.ones(64))


def _logits(rows: int, dtype: torch.dtype) -> tuple[Any, ...]:
    return torch.randn(rows, WIDTH).to(dtype), torch.randint(0, WIDTH, (rows,))


CASES = {
    "softmax": Case(lambda x: torch.softmax(x, -1), _rows(1), 2),
    "layer_norm forward": Case(
        lambda x, w, b: torch.native_layer_norm(x, (WIDTH,), w, b, 1e-5), _rows(1, "weight", "bias"), 2
    ),
    "layer_norm backward": Case(
        lambda g, x, mean, rstd, w, b: torch.ops.aten.native_layer_norm_backward(
            g, x, (WIDTH,), mean, rstd, w, b, [True, True, True]
        ),
        _with_statistics,
        3,
    ),
    "gelu": Case(lambda x: F.gelu(x), _rows(1), 2),
    "gelu tanh": Case(lambda x: F.gelu(x, approximate="tanh"), _rows(1), 2),
    "cross_entropy": Case(lambda x, target: F.cross_entropy(x, target), _logits, 1),
    "bias + gelu + dropout": Case(lambda x, b: F.dropout(F.gelu(x + b), 0.1), _rows(1, "bias"), 2),
    "batch_norm": Case(
        lambda x, w, b, mean, var: F.batch_norm(x, mean, var, w, b, training=True), _images, 2
    ),
    "transpose + add": Case(
        lambda x, y: x.t() + y,
        lambda rows, dtype: (_rows(1)(rows, dtype)[0], _rows(1)(rows, dtype)[0].t().contiguous()),
        3,
    ),
}


def seconds_of(call: Function, inputs: tuple[Any, ...], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call(*inputs)
    return (time.perf_counter() - start) / repeats


def measure(
    case: Case, rows: int, dtype: torch.dtype, backends: list[str], rounds: int
) -> dict[str, list[float]]:
    """Backend -> seconds of each round; `copy` is the plain copy."""
    torch._dynamo.reset()
    inputs = case.make(rows, dtype)
    calls: dict[str, Function] = {"eager": case.function}
    for backend in backends:
        torch._dynamo.reset()
        calls[backend] = torch.compile(case.function, backend=backend)
        for _ in range(3):
            calls[backend](*inputs)
    source = torch.zeros(inputs[0].numel() * case.moved // 2, dtype=dtype)
    target = torch.empty_like(source)
    calls["copy"] = lambda *_: target.copy_(source)
    repeats = max(1, round(0.005 / max(seconds_of(calls[backends[0]], inputs, 2), 1e-6)))
    result: dict[str, list[float]] = {name: [] for name in calls}
    for i in range(rounds):
        names = list(calls)
        for name in names[i % len(names) :] + names[: i % len(names)]:
            result[name].append(seconds_of(calls[name], inputs, repeats))
    return result


def main(
    rounds: int = 30,
    threads: int = 2,
    kernel: Annotated[list[str] | None, typer.Option(help="all by default")] = None,
    backend: Annotated[list[str] | None, typer.Option(help="kerf and inductor by default")] = None,
) -> None:
    torch.set_num_threads(threads)
    backends = backend or ["kerf", "inductor"]
    table = Table(title=f"medians of {rounds} rounds, {threads} threads; below 1: Kerf is faster")
    for column in ("kernel", "dtype", "from", "kerf us", "kerf / eager", "kerf / inductor", "of copy"):
        table.add_column(column, justify="left" if column in ("kernel", "dtype", "from") else "right")
    ratios = []
    with torch.no_grad():
        for name in kernel or CASES:
            for dtype in (torch.float32, torch.bfloat16):
                for place, rows in (("cache", IN_CACHE), ("memory", FROM_MEMORY)):
                    seconds = measure(CASES[name], rows, dtype, backends, rounds)
                    columns = []
                    for other in ("eager", "inductor"):
                        if other not in seconds:
                            columns.append("-")
                            continue
                        ratio = paired_ratio(seconds["kerf"], seconds[other])
                        columns.append("{:.2f} [{:.2f}, {:.2f}]".format(*ratio))
                        if other == "inductor":
                            ratios.append(ratio[0])
                    share = paired_ratio(seconds["copy"], seconds["kerf"])[0]
                    kerf_us = f"{np.median(seconds['kerf']) * 1e6:.0f}"
                    table.add_row(name, str(dtype)[6:], place, kerf_us, *columns, f"{share:.2f}")
    console = Console(width=130)
    console.print(table)
    if ratios:
        console.print(
            f"kerf / inductor, geometric mean of {len(ratios)}: {np.exp(np.mean(np.log(ratios))):.3f}"
        )
    console.print(f"externs: {sorted({e.op for r in kerf.compilations() for e in r.externs})}")


if __name__ == "__main__":
    typer.run(main)
