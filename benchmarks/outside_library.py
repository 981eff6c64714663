"""Where whole steps spend their time: inside library calls (matrix products, convolutions, attention) or not.

    benchmarks/outside_library.py --model bert --mode train

The time outside is what a compiler is responsible for: its kernels, its host code, Dynamo's guards and
autograd. It is the wall time of a step less the time in library operators, as torch's profiler counts it; for
Kerf, which calls some of them without the dispatcher that the profiler watches, as kerf.profile does. Rounds
alternate between the backends.
"""

import time
from typing import Annotated

import kerf
import torch
import typer
from measure import COMPILE_ORDER, WARM_UP_STEPS, Contender
from models import MODELS, build
from rich.console import Console
from rich.table import Table

# Operators whose time is the library's, as their names begin. Of nested ones, only the outer counts.
LIBRARY = (
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::linear",
    "aten::convolution",
    "aten::_convolution",
    "aten::mkldnn_convolution",
    "aten::_scaled_dot_product",
    "mkldnn::",
    "mkl::",
)


def profiled_step(contender: Contender) -> tuple[float, float]:
    """Seconds of one step, and of them in library operators."""
    contender.model.zero_grad()
    if contender.backend == "kerf":
        with kerf.profile() as steps:
            seconds = contender.timed_step()
        return seconds, sum(step.seconds for step in steps.steps if step.is_library)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        start = time.perf_counter()
        contender.step()
        seconds = time.perf_counter() - start
    library = sum(
        event.time_range.elapsed_us()
        for event in profile.events()
        if _is_library(event) and not _has_library_parent(event)
    )
    return seconds, library * 1e-6


def _is_library(event: torch.autograd.profiler_util.FunctionEvent) -> bool:
    return event.name.startswith(LIBRARY)


def _has_library_parent(event: torch.autograd.profiler_util.FunctionEvent) -> bool:
    parent = event.cpu_parent
    while parent is not None:
        if _is_library(parent):
            return True
        parent = parent.cpu_parent
    return False


def main(
    model: str = "bert",
    mode: str = "train",
    rounds: int = 10,
    threads: int = 2,
    backend: Annotated[list[str] | None, typer.Option(help="all three by default")] = None,
) -> None:
    torch.set_num_threads(threads)
    workload = build(MODELS[model])
    order = [name for name in COMPILE_ORDER if name in (backend or COMPILE_ORDER)]
    contenders = [Contender(name, workload, mode) for name in order]
    for contender in contenders:
        for _ in range(WARM_UP_STEPS):
            contender.timed_step()
        profiled_step(contender)
    steps: dict[str, list[tuple[float, float]]] = {name: [] for name in order}
    for _ in range(rounds):
        for contender in contenders:
            steps[contender.backend].append(profiled_step(contender))
    table = Table(title=f"{model} {mode}, medians of {rounds} profiled steps, ms")
    for column in ("backend", "step", "library", "outside"):
        table.add_column(column, justify="left" if column == "backend" else "right")
    for name, pairs in steps.items():
        columns = ([s for s, _ in pairs], [library for _, library in pairs], [s - lib for s, lib in pairs])
        medians = [torch.tensor(column, dtype=torch.float64).median().item() for column in columns]
        table.add_row(name, *(f"{seconds * 1e3:.2f}" for seconds in medians))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
