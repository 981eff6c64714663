"""The first step of a process, without and with what an earlier process left on disk.

    benchmarks/first_step.py --model bert --mode train --repeats 3

Each measurement is a process of its own. A step of training is forward, loss and backward; importing torch
and building the model are not in it, tracing and compiling are. The repeats of all backends alternate.
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

BACKENDS = ("kerf", "inductor")


def measure(backend: str, model_name: str, mode: str) -> dict[str, Any]:
    """Seconds of the first step in this process."""
    import kerf
    import torch
    from models import MODELS, build

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


def main(
    model: str = "bert",
    mode: str = "train",
    repeats: int = 3,
    child: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    if child:
        print(json.dumps(measure(child, model, mode)))
        return
    warm: dict[str, list[dict[str, Any]]] = {backend: [] for backend in BACKENDS}
    with tempfile.TemporaryDirectory() as folder:
        for backend in BACKENDS:
            cold = run_child(backend, model, mode, Path(folder))
            print(f"{model} {mode} {backend}: cold {cold['seconds']:.2f} s")
        for _ in range(repeats):
            for backend in BACKENDS:
                warm[backend].append(run_child(backend, model, mode, Path(folder)))
    for backend in BACKENDS:
        seconds = [answer["seconds"] for answer in warm[backend]]
        print(f"{model} {mode} {backend}: warm {statistics.median(seconds):.2f} s, of {len(seconds)}")
    longest = max(answer["longest_load"] for answer in warm["kerf"])
    print(f"{model} {mode} kerf: longest load of a graph {longest * 1e3:.1f} ms")


if __name__ == "__main__":
    typer.run(main)
