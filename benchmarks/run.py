"""Ratios of Kerf against eager and TorchInductor, measured in one run (make bench).

    benchmarks/run.py --model bert --mode train --rounds 10    one row, quickly
    benchmarks/run.py --rounds 0 --backend kerf       which models run, and are right

Every model and mode is measured by a child process (measure.py) with a time limit: one that fails or hangs is
a row of the table. Caches on disk are empty at the start of a run.
"""

import contextlib
import dataclasses
import enum
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from measure import Job
from models import MODELS
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).resolve().parent

# Of one child: TorchInductor alone needs a minute or more for the larger models on two cores.
TIME_LIMIT = 600
RESAMPLES = 2000

ModelName = enum.StrEnum("ModelName", {name: name for name in MODELS})


class Mode(enum.StrEnum):
    train = "train"
    infer = "infer"


class Backend(enum.StrEnum):
    eager = "eager"
    inductor = "inductor"
    kerf = "kerf"


# Children


def run_child(job: Job, folder: Path, limit: float) -> dict[str, Any]:
    """Backend -> numbers of measure.py; a child that dies gives one error for each backend."""
    answer = folder / f"{job.model}-{job.mode}.json"
    caches = {"KERF_CACHE_DIR": str(folder / "kerf"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    command = [sys.executable, str(HERE / "measure.py"), json.dumps(dataclasses.asdict(job)), str(answer)]
    with open(folder / "log", "w+") as log:
        child = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | caches, start_new_session=True
        )
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            return _failed(job, f"took longer than {limit:.0f} s", "")
        finally:
            _end_group(child)
        log.seek(0)
        tail = log.read()[-4000:]
    if status == 0 and answer.exists():
        return json.loads(answer.read_text())
    died = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    lines = tail.strip().splitlines()
    return _failed(job, f"{died}: {lines[-1]}" if lines else died, tail)


def _end_group(child: subprocess.Popen) -> None:
    """The child, and compile workers that it left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _failed(job: Job, error: str, log: str) -> dict[str, Any]:
    return {backend: {"error": error, "traceback": log} for backend in job.backends}


# Statistics


def paired_ratio(ours: list[float], theirs: list[float], seed: int = 0) -> tuple[float, float, float]:
    """Median of the ratios of rounds, and its 95 % interval by bootstrap."""
    ratios = np.array(ours) / np.array(theirs)
    picks = np.random.default_rng(seed).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(ratios[picks], axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


def add_ratios(answers: dict[str, Any]) -> None:
    """Kerf's time by that of each other backend: below 1 is faster."""
    ours = answers.get("kerf", {})
    for backend, theirs in answers.items():
        if backend != "kerf" and "seconds" in ours and "seconds" in theirs:
            ours[f"by_{backend}"] = paired_ratio(ours["seconds"], theirs["seconds"])


# The tables


def _milliseconds(answer: dict[str, Any] | None) -> str:
    return f"{answer['step'] * 1e3:.1f}" if answer and "step" in answer else "-"


def _seconds(answer: dict[str, Any] | None, key: str) -> str:
    return f"{answer[key]:.2f}" if answer and key in answer else "-"


def _ratio(answer: dict[str, Any], key: str) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*answer[key]) if key in answer else "-"


def speed_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Steady steps (ms), kerf's time by the others' with 95 % interval, compile times (s)")
    for column in ("model", "mode"):
        table.add_column(column)
    for column in (
        *("eager", "inductor", "kerf", "kerf / eager", "kerf / inductor"),
        *("cold inductor", "cold kerf", "compile inductor", "compile kerf"),
    ):
        table.add_column(column, justify="right")
    for row in rows:
        eager, inductor, kerf = (row["backends"].get(b) for b in ("eager", "inductor", "kerf"))
        table.add_row(
            row["model"],
            row["mode"],
            *map(_milliseconds, (eager, inductor, kerf)),
            *(_ratio(kerf or {}, key) for key in ("by_eager", "by_inductor")),
            *(_seconds(answer, "cold_start") for answer in (inductor, kerf)),
            *(_seconds(answer, "compile_seconds") for answer in (inductor, kerf)),
        )
    return table


def numbers_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Kerf: kernels, library calls, numbers against eager and a float64 referee")
    columns = ("model", "mode", "numbers", "error", "eager's", "graphs", "nodes", "kernels", "externs")
    for column in (*columns, "compiled"):
        table.add_column(column, justify="left" if column in ("model", "mode", "numbers") else "right")
    for row in rows:
        answer = row["backends"].get("kerf", {})
        if "right" not in answer:
            table.add_row(row["model"], row["mode"], "[red]failed")
            continue
        table.add_row(
            row["model"],
            row["mode"],
            "[green]right" if answer["right"] else "[red]WRONG",
            f"{answer['error']:.1e}",
            f"{answer['eager_error']:.1e}",
            *(str(answer[key]) for key in ("graphs", "nodes", "kernels", "externs")),
            f"{answer['compiled_share']:.0%}",
        )
    return table


def failures(rows: list[dict[str, Any]]) -> Table:
    table = Table("model", "mode", "backend", "error", title="Failures")
    for row in rows:
        for backend, answer in row["backends"].items():
            if "traceback" in answer:
                table.add_row(row["model"], row["mode"], backend, answer["error"][:300])
    return table


def report(rows: list[dict[str, Any]], console: Console) -> None:
    if any("step" in answer for row in rows for answer in row["backends"].values()):
        console.print(speed_table(rows))
    if any("kerf" in row["backends"] for row in rows):
        console.print(numbers_table(rows))
    failed = failures(rows)
    if failed.row_count:
        console.print(failed)


def measure_all(jobs: list[Job], limit: float, console: Console) -> list[dict[str, Any]]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    folder = Path(tempfile.mkdtemp(prefix="kerf-bench-"))
    rows = []
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("", total=len(jobs))
            for job in jobs:
                progress.update(task, description=f"{job.model} {job.mode}")
                answers = run_child(job, folder, limit)
                add_ratios(answers)
                rows.append({"model": job.model, "mode": job.mode, "backends": answers})
                progress.advance(task)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def main(
    model: Annotated[list[ModelName], typer.Option(help="Repeatable; default: all.")] = list(ModelName),  # noqa: B006
    mode: Annotated[list[Mode], typer.Option(help="Repeatable.")] = list(Mode),  # noqa: B006
    backend: Annotated[list[Backend], typer.Option(help="Repeatable.")] = list(Backend),  # noqa: B006
    rounds: Annotated[
        int, typer.Option(min=0, help="Timed steps of each backend; 0 checks numbers only.")
    ] = 30,
    threads: Annotated[int, typer.Option(min=1)] = 2,
    autocast: Annotated[bool, typer.Option(help="Steps under autocast to bfloat16.")] = False,
    limit: Annotated[float, typer.Option(help="Seconds for one model in one mode.")] = TIME_LIMIT,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/bench.json"),
) -> None:
    """Measures models under several backends; exit status 1 if Kerf failed or was wrong somewhere."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the child and the folder go too
    console = Console()
    backends = [b.value for b in backend]
    if Backend.inductor in backend and not shutil.which(os.environ.get("CXX", "g++")):
        console.print("TorchInductor is left out: it needs g++ (or CXX), and there is none")
        backends.remove("inductor")
    jobs = [Job(name.value, m.value, backends, rounds, threads, autocast) for name in model for m in mode]
    rows = measure_all(jobs, limit, console)
    report(rows, console)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        json.dumps({"rounds": rounds, "threads": threads, "autocast": autocast, "rows": rows}, indent=1)
    )
    console.print(f"written to {output}")
    if not all(row["backends"].get("kerf", {"right": True}).get("right") for row in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
