"""The first step of a process, without and with what an earlier process left on disk.

    benchmarks/first_step.py --model bert --mode train --repeats 3

Each measurement is a process of its own. A step of training is forward, loss and backward; importing torch
and building the model are not in it, tracing and compiling are. The repeats of all backends alternate.

Cold is with empty folders for both: TorchInductor's probe of the C++ compiler and its precompiled header are
in it. Probed is with those there (a tiny model was compiled into the folder) and none of the model's kernels.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

BACKENDS = ("kerf", "inductor")


def measure(backend: str, model_name: str, mode: str) -> dict[str, Any]:
    """Seconds of the first step in this process."""
    import kerf
    import torch
    from models import MODELS, build

    if model_name == "tiny":
        torch.compile(lambda x: x.sin() + 1, backend=backend)(torch.ones(64))
        return {}
    workload = build(MODELS[model_name])
    call = torch.compile(workload.model.train(mode == "train"), backend=backend)
    start = time.perf_counter()
    if mode == "train":
        workload.loss(call, workload.inputs).backward()
    else:
        with torch.no_grad():
            call(**workload.inputs)
    seconds = time.perf_counter() - start
    loads = [c.seconds.get("load", 0.0) for c in kerf.compilations()]
    return {"seconds": seconds, "longest_load": max(loads, default=0.0)}


def run_child(backend: str, model: str, mode: str, folder: Path) -> dict[str, Any]:
    """The same in a new process that keeps its caches in `folder`."""
    caches = {"KERF_CACHE_DIR": str(folder / "kerf"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    command = [sys.executable, __file__, "--child", backend, "--model", model, "--mode", mode]
    child = subprocess.run(
        command, env=os.environ | {"KERF_CACHE": "1"} | caches, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(child.stdout.splitlines()[-1])


def seconds_of(backend: str, model: str, mode: str, folder: Path) -> float:
    return run_child(backend, model, mode, folder)["seconds"]


def measure_row(model: str, mode: str, repeats: int, probed: bool, folder: str) -> dict[str, Any]:
    """Seconds by kind of start and backend, and kerf's longest load of a graph; `folder` is empty."""
    row: dict[str, Any] = {"cold": {}, "probed": {}, "warm": {}}
    warm: dict[str, list[dict[str, Any]]] = {backend: [] for backend in BACKENDS}
    with tempfile.TemporaryDirectory() as other:
        for backend in BACKENDS:
            row["cold"][backend] = seconds_of(backend, model, mode, Path(folder))
            if probed:
                run_child(backend, "tiny", mode, Path(other))
                row["probed"][backend] = seconds_of(backend, model, mode, Path(other))
        for i in range(repeats):
            for backend in BACKENDS if i % 2 == 0 else BACKENDS[::-1]:
                warm[backend].append(run_child(backend, model, mode, Path(folder)))
    for backend, answers in warm.items():
        row["warm"][backend] = statistics.median(answer["seconds"] for answer in answers)
    row["longest_load"] = max(answer["longest_load"] for answer in warm["kerf"])
    return row


def cells_of(row: dict[str, Any], kinds: list[str]) -> list[str]:
    cells = []
    for kind in kinds:
        ours, theirs = (row[kind][backend] for backend in BACKENDS)
        cells += [f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.3f}"]
    return [*cells, f"{row['longest_load'] * 1e3:.1f}"]


def main(
    model: Annotated[list[str] | None, typer.Option(help="Repeatable; all by default.")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="train, infer; both by default.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Warm starts of each backend.")] = 3,
    probed: Annotated[bool, typer.Option(help="Also with the C++ compiler's probe cached.")] = False,
    child: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    modes = mode or ["train", "infer"]
    if child:
        print(json.dumps(measure(child, (model or ["bert"])[0], modes[0])))
        return
    from models import MODELS

    console = Console()
    kinds = ["cold", "probed", "warm"] if probed else ["cold", "warm"]
    table = Table("model", "mode", title=f"First step, s; warm: medians of {repeats}; longest load, ms")
    for column in [f"{kind} {what}" for kind in kinds for what in (*BACKENDS, "ratio")] + ["load"]:
        table.add_column(column, justify="right")
    for name in model or MODELS:
        for which in modes:
            with tempfile.TemporaryDirectory() as folder:
                cells = cells_of(measure_row(name, which, repeats, probed, folder), kinds)
            console.print(name, which, *cells)
            table.add_row(name, which, *cells)
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
