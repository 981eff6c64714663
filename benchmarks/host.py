"""What a compiled call costs besides its work: whole calls of tiny models, where the work is next to nothing.

    benchmarks/host.py --case mlp --case bert --mode infer

Whole calls of Kerf and TorchInductor alternate in batches; Dynamo's guards and autograd, the same for both,
are in them. Calls of Kerf's graphs are timed as well, kernels and library calls within included, beside the
budget for all but those.
"""

import functools
import os
import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import kerf
import kerf.backend
import models
import torch
import torch._dynamo
import typer
from measure import COMPILE_ORDER, Contender
from models import Workload, build
from rich.console import Console
from rich.table import Table
from run import paired_ratio

# Seconds of one batch of calls: long enough for the clock, short enough that noise falls on both sides.
BATCH_SECONDS = 0.02

# Microseconds within an executor: a call, an input, an output, a kernel, a library call.
BUDGET = {"calls": 5.0, "inputs": 0.1, "outputs": 1.0, "kernels": 1.0, "externs": 3.0}


# Cases


class Chain(torch.nn.Module):
    """Products of small matrices with something pointwise between them."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(length))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x)) + x
        return x


class Pointwise(torch.nn.Module):
    """One kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * self.scale).exp() + x


class ManyTensors(torch.nn.Module):
    """A result for each of many parameters."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.full((4,), float(i)) for i in range(count))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x * weight for weight in self.weights]


def plain(module: torch.nn.Module) -> Workload:
    def loss(call: Callable[..., Any], inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        results = call(**inputs)
        return sum(r.sum() for r in results) if isinstance(results, list) else results.sum()

    return Workload(module.train(), {"x": torch.randn(4, 8)}, loss)


def many_tensors() -> Workload:
    workload = plain(ManyTensors(64))
    return Workload(workload.model, {"x": torch.randn(4)}, workload.loss)


SMALL = {"hidden": 32, "batch": 1, "length": 8, "vocabulary": 64}

CASES: dict[str, Callable[[], Workload]] = {
    "pointwise": lambda: plain(Pointwise()),
    "mlp": lambda: plain(Chain(3, 8)),
    "chain": lambda: plain(Chain(20, 8)),
    "many tensors": many_tensors,
    "bert": lambda: models.bert(**SMALL),
    "gpt2": lambda: models.gpt2(**SMALL),
    "qwen3": lambda: models.qwen3(**SMALL),
    "llama": lambda: models.llama(**SMALL),
    "t5": lambda: models.t5(**SMALL),
    "vit": lambda: models.vit(hidden=32, batch=1, size=32, classes=8),
    "mobilenetv3": lambda: models.timm_model("mobilenetv3_small_050", batch=2, size=32),
}


# Measuring


class TimedGraphs:
    """Kerf's compiled graphs while `watched`: seconds of their calls and what the budget gives them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.counts = dict.fromkeys(BUDGET, 0)

    def watch(self, compile_traced: Callable[..., Any]) -> Callable[..., Any]:
        """`compile_traced` of graphs that are timed."""

        @functools.wraps(compile_traced)
        def compile_timed(*args: Any, **kwargs: Any) -> Any:
            compiled = compile_traced(*args, **kwargs)
            record = kerf.compilations()[-1]

            def call(arguments: list[Any]) -> Any:
                inputs = len(arguments)
                start = time.perf_counter()
                results = compiled(arguments)
                self.seconds += time.perf_counter() - start
                made = {"calls": 1, "inputs": inputs, "outputs": len(results)}
                made |= {"kernels": record.kernels, "externs": len(record.externs)}
                for name, count in made.items():
                    self.counts[name] += count
                return results

            call._boxed_call = True
            return call

        return compile_timed

    def microseconds(self, calls: int, run: Callable[[], None]) -> tuple[float, float]:
        """Of one of `calls` runs: measured, and the budget."""
        self.seconds, self.counts = 0.0, dict.fromkeys(BUDGET, 0)
        for _ in range(calls):
            run()
        return self.seconds / calls * 1e6, sum(BUDGET[n] * count for n, count in self.counts.items()) / calls


def graph_times(workload: Workload, mode: str, calls: int) -> tuple[float, float]:
    graphs, compile_traced = TimedGraphs(), kerf.backend._compile_traced
    kerf.backend._compile_traced = graphs.watch(compile_traced)
    try:
        torch._dynamo.reset()
        contender = Contender("kerf", workload, mode)
        for _ in range(10):
            contender.timed_step()
        times = [graphs.microseconds(calls, contender.timed_step) for _ in range(5)]
    finally:
        kerf.backend._compile_traced = compile_traced
    return statistics.median(t for t, _ in times), times[0][1]


def batch_seconds(contender: Contender, calls: int) -> float:
    """Of one call in a batch."""
    return sum(contender.timed_step() for _ in range(calls)) / calls


def measure(make: Callable[[], Workload], mode: str, backends: list[str], rounds: int) -> dict[str, Any]:
    torch._dynamo.reset()
    workload = build(make)
    contenders = [Contender(name, workload, mode) for name in backends]
    for contender in contenders:
        for _ in range(20):
            contender.timed_step()
    calls = max(1, int(BATCH_SECONDS / batch_seconds(contenders[0], 20)))
    seconds: dict[str, list[float]] = {name: [] for name in backends}
    for i in range(rounds):
        for contender in contenders[i % len(contenders) :] + contenders[: i % len(contenders)]:
            seconds[contender.backend].append(batch_seconds(contender, calls))
    answer: dict[str, Any] = {name: statistics.median(values) * 1e6 for name, values in seconds.items()}
    if "kerf" in seconds and "inductor" in seconds:
        answer["ratio"] = paired_ratio(seconds["kerf"], seconds["inductor"])
    if "kerf" in seconds:
        answer["graphs"], answer["budget"] = graph_times(workload, mode, calls)
    return answer


def main(
    case: Annotated[list[str] | None, typer.Option(help=f"Repeatable, all by default: {list(CASES)}")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="train, infer; both by default.")] = None,
    backend: Annotated[list[str] | None, typer.Option(help="Repeatable; all three by default.")] = None,
    rounds: int = 30,
    threads: int = 2,
) -> None:
    torch.set_num_threads(threads)
    os.environ["KERF_CACHE"] = "0"  # graphs that come from disk are not timed
    backends = [name for name in COMPILE_ORDER if name in (backend or COMPILE_ORDER)]
    table = Table(title=f"Microseconds of a call, medians of {rounds} batches")
    for column in ("case", "mode", *backends, "kerf / inductor", "kerf's graphs", "budget"):
        table.add_column(column, justify="left" if column in ("case", "mode") else "right")
    console = Console()
    for name in case or CASES:
        for which in mode or ("infer", "train"):
            answer = measure(CASES[name], which, backends, rounds)
            ratio = "{:.2f} [{:.2f}, {:.2f}]".format(*answer["ratio"]) if "ratio" in answer else "-"
            graphs = [f"{answer[key]:.0f}" if key in answer else "-" for key in ("graphs", "budget")]
            row = (name, which, *(f"{answer[b]:.0f}" for b in backends), ratio, *graphs)
            table.add_row(*row)
            console.print(" ".join(row))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
