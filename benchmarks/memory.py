"""Memory of a training step: its peak, and what lives between forward and backward.

    benchmarks/memory.py --model bert --model resnet50

Each backend runs in a process of its own with allocations.c preloaded, which counts the heap blocks of all
libraries alike: torch's allocator, Kerf's arenas, scratch of oneDNN. Blocks under 16 KiB are not counted.
Counts are of a step when everything is compiled and warm, gradients are freed before it. The peak counts from
the state before the first step, model and inputs in place, so that what a backend holds from step to step is
in it; that is shown too. Saved for backward is what the forward pass leaves behind, with the loss alone held;
memory that Kerf keeps from call to call counts there as far as a tensor uses it.
"""

import ctypes
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from kerf import _core as kerf_core
from measure import COMPILE_ORDER, WARM_UP_STEPS, Contender
from models import MODELS, build
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).resolve().parent
COUNTS = ("peak", "saved", "held")


class Heap:
    """What the preloaded library counts."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self.live, self.peak = library.kerf_live_bytes, library.kerf_peak_bytes
        self.live.restype = self.peak.restype = ctypes.c_long
        self.reset_peak = library.kerf_reset_peak


def measure(backend: str, model: str, threads: int) -> dict[str, int]:
    """Bytes, in a process with the library preloaded."""
    torch.set_num_threads(threads)
    heap = Heap()
    contender = Contender(backend, build(MODELS[model]), "train")
    gc.collect()
    before = heap.live()
    for _ in range(WARM_UP_STEPS):
        contender.timed_step()
    contender.model.zero_grad()
    gc.collect()
    start, start_unused = heap.live(), _unused_bytes()
    heap.reset_peak()
    loss = contender.loss(contender.call, contender.inputs)
    saved = heap.live() - start - (_unused_bytes() - start_unused)
    loss.backward()
    return {"peak": heap.peak() - before, "saved": saved, "held": start - before}


def _unused_bytes() -> int:
    """Of the memory that Kerf keeps from call to call, what no tensor and no call uses now."""
    kept, used = kerf_core.kept_memory()
    return kept - used


def run_child(backend: str, model: str, threads: int, library: Path) -> dict[str, int] | None:
    """Counts of a new process; None if it failed."""
    command = [sys.executable, __file__, "--child", backend, "--model", model, "--threads", str(threads)]
    # MKL else keeps packed operands from call to call, whoever calls it.
    environment = os.environ | {"LD_PRELOAD": str(library), "MKL_DISABLE_FAST_MM": "1"}
    child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(child.stdout.splitlines()[-1]) if child.returncode == 0 else None


def build_library(folder: Path) -> Path:
    library = folder / "allocations.so"
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    source = HERE / "allocations.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


def table_of(rows: list[dict[str, Any]], backends: list[str]) -> Table:
    table = Table(title="A training step, MB")
    table.add_column("model")
    for count in COUNTS:
        for backend in backends:
            table.add_column(f"{count} {backend}", justify="right")
        table.add_column("kerf / inductor", justify="right")
    for row in rows:
        cells = [row["model"]]
        for count in COUNTS:
            counts = [(row[backend] or {}).get(count) for backend in backends]
            cells += ["failed" if c is None else f"{c * 1e-6:.1f}" for c in counts]
            cells.append(_ratio(row, count))
        table.add_row(*cells)
    return table


def _ratio(row: dict[str, Any], count: str) -> str:
    ours, theirs = row.get("kerf"), row.get("inductor")
    return f"{ours[count] / theirs[count]:.2f}" if ours and theirs and theirs[count] else "-"


def _geomean(rows: list[dict[str, Any]], count: str) -> float:
    pairs = [(row.get("kerf"), row.get("inductor")) for row in rows]
    logs = [np.log(ours[count] / theirs[count]) for ours, theirs in pairs if ours and theirs]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


def main(
    model: Annotated[list[str] | None, typer.Option(help="Repeatable; all by default.")] = None,
    backend: Annotated[list[str] | None, typer.Option(help="Repeatable; all three by default.")] = None,
    threads: int = 2,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/memory.json"),
    child: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    if child:
        print(json.dumps(measure(child, (model or ["bert"])[0], threads)))
        return
    backends = [name for name in COMPILE_ORDER if name in (backend or COMPILE_ORDER)]
    names, console, rows = model or list(MODELS), Console(), []
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as folder, Progress(*columns, console=console) as progress:
        library = build_library(Path(folder))
        task = progress.add_task("", total=len(names) * len(backends))
        for name in names:
            rows.append({"model": name})
            for which in backends:
                progress.update(task, description=f"{name} {which}")
                rows[-1][which] = run_child(which, name, threads, library)
                progress.advance(task)
    console.print(table_of(rows, backends))
    for count in ("peak", "saved"):
        console.print(f"{count}, kerf / inductor, geometric mean: {_geomean(rows, count):.3f}")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"threads": threads, "rows": rows}, indent=1))


if __name__ == "__main__":
    typer.run(main)
