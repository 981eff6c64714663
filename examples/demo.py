"""Trains a small BERT and a ResNet in eager, Kerf and TorchInductor from the same weights, side by side.

Prints the losses, what the first step costs (tracing and compiling) and a later one, and what Kerf made of
each model: kernels, and the operators that run as library calls with the reason. A few minutes on two cores,
most of them TorchInductor's C++ compiler. Exit status 1 if Kerf fails, or its losses are not eager's.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import kerf
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from models import Workload, bert, build, timm_model  # noqa: E402

STEPS = 12
LEARNING_RATE = 1e-4

# Of losses, relative: rounding that grows from step to step. The tests judge with a float64 referee instead.
TOLERANCE = 1e-4

MODELS: dict[str, Callable[[], Workload]] = {
    "BERT (2 layers, hidden 256, batch 2 x 64 tokens)": lambda: bert(layers=2, hidden=256, length=64),
    "ResNet-18 (batch 2, 64 x 64 pixels)": lambda: timm_model("resnet18", size=64),
}


class Run(NamedTuple):
    """Losses and seconds of each step, or the error that ended it."""

    losses: list[float]
    seconds: list[float]
    error: Exception | None = None

    @property
    def steady(self) -> float:
        return statistics.median(self.seconds[2:])

    @property
    def cold_start(self) -> float:
        return self.seconds[0] - self.steady


def train(make: Callable[[], Workload], backend: str, advance: Callable[[], None]) -> Run:
    """STEPS steps of AdamW on one batch."""
    torch._dynamo.reset()
    workload = build(make)
    call = workload.model if backend == "eager" else torch.compile(workload.model, backend=backend)
    optimizer = torch.optim.AdamW(workload.model.parameters(), lr=LEARNING_RATE)
    run = Run([], [])
    try:
        for _ in range(STEPS):
            start = time.perf_counter()
            optimizer.zero_grad()
            loss = workload.loss(call, workload.inputs)
            loss.backward()
            optimizer.step()
            run.losses.append(loss.item())
            run.seconds.append(time.perf_counter() - start)
            advance()
    except Exception as error:  # shown in the table; the others go on
        return run._replace(error=getattr(error, "inner_exception", None) or error)
    return run


def usable_backends(console: Console) -> list[str]:
    """Compiles something tiny with each, which also takes what belongs to no model (imports, headers)."""
    usable = ["eager"]
    for backend in ("kerf", "inductor"):  # who compiles later finds caches of tracing filled
        if backend == "inductor" and not shutil.which(os.environ.get("CXX", "g++")):
            console.print("[yellow]TorchInductor is left out: it needs a C++ compiler (g++).")
            continue
        try:
            with console.status(f"starting {backend}"):
                gelu = torch.compile(torch.nn.GELU(), backend=backend)
                gelu(torch.randn(64, requires_grad=True)).sum().backward()
            usable.append(backend)
        except Exception as error:
            if backend == "kerf":
                raise
            console.print(f"[yellow]TorchInductor is left out: {first_line(error)}", soft_wrap=True)
    return usable


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


# What is printed


def losses_table(runs: dict[str, Run]) -> Table:
    table = Table("step", title="Loss")
    for backend in runs:
        table.add_column(backend, justify="right")
    for step in range(STEPS):
        cells = (f"{run.losses[step]:.5f}" if step < len(run.losses) else "-" for run in runs.values())
        table.add_row(str(step + 1), *cells)
    return table


def times_table(runs: dict[str, Run]) -> Table:
    table = Table("backend", title="Time")
    for column in ("cold start (s)", "steady step (ms)", "by eager's"):
        table.add_column(column, justify="right")
    for backend, run in runs.items():
        if run.error:
            table.add_row(backend, f"[red]failed: {first_line(run.error)}")
            continue
        cold = "-" if backend == "eager" else f"{run.cold_start:.2f}"
        table.add_row(backend, cold, f"{run.steady * 1e3:.1f}", f"{run.steady / runs['eager'].steady:.2f}")
    return table


def kernels_table(records: list[kerf.Compilation]) -> Table:
    table = Table("graph", title="What Kerf compiled")
    for column in ("operators", "kernels", "library calls", "compile (s)"):
        table.add_column(column, justify="right")
    for record in records:
        seconds = record.seconds["total"]
        table.add_row(
            record.name, *map(str, (record.nodes, record.kernels, len(record.externs))), f"{seconds:.2f}"
        )
    return table


def externs_table(records: list[kerf.Compilation]) -> Table:
    """The calls by reason; a reason that names the operator is the same one for all of them."""
    calls: dict[str, Counter[str]] = {}
    for extern in (extern for record in records for extern in record.externs):
        reason = extern.reason.removesuffix(f" for {extern.op}")
        calls.setdefault(reason, Counter())[extern.op.removesuffix(".default")] += 1
    table = Table("reason", "calls", "operators", title="What it calls the library for")
    for reason, operators in calls.items():
        names = ", ".join(f"{count} {operator}" for operator, count in operators.most_common())
        table.add_row(reason, str(operators.total()), names)
    return table


def agrees(runs: dict[str, Run]) -> bool:
    ours, theirs = runs["kerf"], runs["eager"]
    pairs = zip(ours.losses, theirs.losses, strict=False)
    return not ours.error and all(abs(a - b) <= TOLERANCE * abs(b) for a, b in pairs)


def show(runs: dict[str, Run], records: list[kerf.Compilation], console: Console) -> bool:
    """All tables of a model; whether Kerf did what eager did."""
    for table in (losses_table(runs), times_table(runs), kernels_table(records), externs_table(records)):
        console.print(table)
    if runs["kerf"].error:
        console.print(f"[bold red]Kerf failed here: {first_line(runs['kerf'].error)}", soft_wrap=True)
    elif not agrees(runs):
        console.print("[bold red]Kerf's losses are not eager's")
    return agrees(runs)


def demonstrate(name: str, make: Callable[[], Workload], backends: list[str], console: Console) -> bool:
    console.rule(f"[bold]{name}")
    kerf.reset()
    runs = {}
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for backend in backends:
            task = progress.add_task(f"{backend}: {STEPS} steps", total=STEPS)
            runs[backend] = train(make, backend, lambda task=task: progress.advance(task))
    return show(runs, kerf.compilations(), console)


def main() -> int:
    console = Console()
    warnings.filterwarnings("ignore")
    console.print(f"kerf {kerf.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory(prefix="kerf-demo-") as folder:
        # Caches of earlier runs would hide what a cold start costs.
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "XDG_CACHE_HOME": folder}
        backends = usable_backends(console)
        good = [demonstrate(name, make, backends, console) for name, make in MODELS.items()]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
