#!/usr/bin/env python3
"""Kernel files for Ascend NPUs on a card: builds, runs, compares and times each, and writes one report.

    kerf compile MODEL.py --target npu:910B3 --out kernels     # on any machine
    tools/npu_hardware.py kernels --report report.json         # on the one with the card

Needs torch, torch_npu, triton-ascend, numpy, typer and rich there, and no built Kerf: docs/npu.md. The status
is 0 if every kernel is right, 1 if one is not, 2 if nothing can be run.
"""

import dataclasses
import importlib.metadata
import importlib.util
import json
import math
import multiprocessing
import os
import platform
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

MOST_BYTES = 16 << 30  # of a kernel's buffers at full extents; larger ones are only built
COPY_BYTES = 1 << 30
STABLE_RUNS = 3
ROUNDS = 20
_START_SECONDS = 300.0  # a new process, until torch_npu is there
_WORDS = 600  # of a message
_FILE_WIDTH = 160


@dataclasses.dataclass
class Row:
    """What became of a kernel.

    Attributes:
        verdict: "right", or the first thing that is not: "does not fit", "does not build", "does not run",
            "wrong", "unstable" (two runs differ), "ended" (the process died or hung).
        message: the words to that.
        blocks: that were built: the largest that the vendor's compiler took.
        refused: larger ones, with its words.
        error: largest at cut extents, in units of the largest value of its output.
        us: median time at full extents.
        of_copy: its bytes a second by those of a device copy.
    """

    file: str
    name: str
    target: str
    bytes: int
    tolerance: float = 0.0
    verdict: str = ""
    message: str = ""
    blocks: dict[str, int] | None = None
    refused: list[str] = dataclasses.field(default_factory=list)
    build_seconds: float | None = None
    error: float | None = None
    us: float | None = None
    of_copy: float | None = None


def _launcher() -> ModuleType:
    """python/kerf/npu.py, without the rest of Kerf."""
    path = Path(__file__).resolve().parents[1] / "python/kerf/npu.py"
    spec = importlib.util.spec_from_file_location("kerf_npu", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


npu = _launcher()


# In a process of its own, where the card is


def microseconds(run: Callable[[], None], rounds: int = ROUNDS) -> float:
    """Median time of `run` by the device's events."""
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def copy_bandwidth(count: int) -> float:
    """Bytes a microsecond, read and written, of a device copy of `count` bytes."""
    source = torch.zeros(count, dtype=torch.uint8, device=npu.DEVICE)
    target = torch.empty_like(source)
    return 2 * count / microseconds(lambda: target.copy_(source))


def machine(copy_bytes: int) -> dict[str, Any]:
    versions = {}
    for package in ("torch", "torch-npu", "triton-ascend", "numpy"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "device": torch.npu.get_device_name(),
        "host": platform.platform(),
        "python": platform.python_version(),
        "packages": versions,
        "cann": os.environ.get("ASCEND_HOME_PATH"),
        "copy_bytes_per_us": copy_bandwidth(copy_bytes),
    }


def full_buffers(kernel: Any) -> list[torch.Tensor]:
    """At full extents: numbers in [-2, 2), indices that are in range, and outputs of bytes 0x5A."""
    generator = torch.Generator().manual_seed(0)
    buffers = []
    for facts in kernel.facts["buffers"]:
        dtype, count = kernel.module.DTYPES[facts["dtype"]], facts["elements"]
        if facts["mode"] == "out":
            data = torch.full((count * dtype.itemsize,), 0x5A, dtype=torch.uint8).view(dtype)
        elif dtype.is_floating_point:
            data = (torch.rand(count, generator=generator) * 4 - 2).to(dtype)
        else:
            below = 2 if dtype == torch.bool else facts.get("below", 7)
            data = torch.randint(below, (count,), generator=generator).to(dtype)
        buffers.append(data.to(npu.DEVICE))
    return buffers


def unstable_buffer(kernel: Any, blocks: dict[str, int], buffers: list[torch.Tensor]) -> str | None:
    """The name of a buffer that comes out differently, by bits, when the kernel runs again; or None."""
    written = [i for i, facts in enumerate(kernel.facts["buffers"]) if facts["mode"] != "in"]
    before = {i: buffers[i].clone() for i in written}
    first: dict[int, torch.Tensor] = {}
    for _ in range(STABLE_RUNS):
        for i in written:
            buffers[i].copy_(before[i])
        kernel.launch(buffers, kernel.facts["extents"], blocks)
        torch.npu.synchronize()
        for i in written:
            bits = buffers[i].view(torch.uint8)
            if not torch.equal(first.setdefault(i, bits.clone()), bits):
                return kernel.facts["buffers"][i]["name"]
    return None


def examine(row: Row, path: Path, copied: float, rounds: int) -> Row:
    """Fills in what is found; a failure is a verdict."""
    stage = "does not build"
    try:
        kernel = npu.Kernel(path)
        row.tolerance = kernel.facts["tolerance"]
        begin = time.perf_counter()
        row.blocks, row.refused = kernel.build(kernel.facts["extents"])
        row.build_seconds = time.perf_counter() - begin
        stage = "does not run"
        row.error = kernel.check(row.blocks)
        if sum(
            b["elements"] * kernel.module.DTYPES[b["dtype"]].itemsize for b in kernel.facts["buffers"]
        ) <= (MOST_BYTES):
            buffers = full_buffers(kernel)
            if name := unstable_buffer(kernel, row.blocks, buffers):
                raise AssertionError(f"{name} comes out differently when the kernel runs again")
            row.us = microseconds(lambda: kernel.launch(buffers, kernel.facts["extents"], row.blocks), rounds)
            row.of_copy = row.bytes / row.us / copied
        row.verdict = "right"
    except npu.DoesNotFit as error:
        row.verdict, row.message = "does not fit", str(error)[-_WORDS:]
    except AssertionError as error:
        row.verdict = "wrong" if row.error is None else "unstable"
        row.message = str(error)[-_WORDS:]
    except Exception as error:
        row.verdict = stage
        row.message = "".join(traceback.format_exception_only(error)).strip()[-_WORDS:]
    return row


def serve(pipe: Connection, copy_bytes: int, rounds: int) -> None:
    """The machine first, then a row for each that comes."""
    importlib.import_module("torch_npu")
    facts = machine(copy_bytes)
    pipe.send(facts)
    while (request := pipe.recv()) is not None:
        pipe.send(examine(*request, facts["copy_bytes_per_us"], rounds))


# Here, where no kernel runs


class Examiner:
    """One process with the card; a new one after a kernel that did not run: the context may be lost."""

    def __init__(self, copy_bytes: int, rounds: int, limit: float) -> None:
        self._arguments = (copy_bytes, rounds)
        self._limit = limit
        self._process: multiprocessing.process.BaseProcess | None = None
        self.machine: dict[str, Any] = {}

    def start(self) -> None:
        """Raises EOFError or TimeoutError if the card cannot even copy."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        facts = self._receive(_START_SECONDS)
        self.machine = self.machine or facts

    def examine(self, row: Row, path: Path) -> Row:
        try:
            if self._process is None:
                self.start()
            self._pipe.send((row, path))
            row = self._receive(self._limit)
        except (EOFError, OSError) as error:  # TimeoutError is one
            ending = str(error) if isinstance(error, TimeoutError) else self._ending()
            row.verdict, row.message = "ended", f"the process {ending}"
        if row.verdict in ("does not run", "ended"):
            self.close()
        return row

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _receive(self, limit: float) -> Any:
        if not self._pipe.poll(limit):
            raise TimeoutError(f"gave no answer within {limit:.0f} s")
        return self._pipe.recv()

    def _ending(self) -> str:
        assert self._process is not None
        self._process.join()
        return f"ended with status {self._process.exitcode}"


@contextmanager
def examiner(copy_bytes: int, rounds: int, limit: float) -> Iterator[Examiner]:
    result = Examiner(copy_bytes, rounds, limit)
    try:
        yield result
    finally:
        result.close()


def find_kernels(folders: list[Path]) -> list[tuple[Row, Path]]:
    """The kernels that each plan.json lists. Raises ValueError, with what to say."""
    found = []
    for folder in folders:
        try:
            plan = json.loads((folder / "plan.json").read_text())
        except OSError as error:
            raise ValueError(
                f"{folder}: no plan.json, which `kerf compile` and Plan.save write ({error})"
            ) from None
        if not plan["target"].startswith("npu:"):
            raise ValueError(f"{folder}: its kernels are for {plan['target']}")
        for facts in plan["kernels"]:
            path = (folder / facts["file"]).resolve()
            name = path.stem.lstrip("0123456789_")
            found.append((Row(str(folder / path.name), name, plan["target"], facts["bytes"]), path))
    if not found:
        raise ValueError("there are no kernels in these folders")
    return found


def as_json(machine: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return {
        "passed": all(row.verdict == "right" for row in rows),
        "machine": machine,
        "verdicts": counts,
        "kernels": [dataclasses.asdict(row) for row in rows],
    }


def print_report(report: dict[str, Any], console: Console) -> None:
    table = Table(header_style="bold")
    for title in ("kernel", "blocks", "verdict", "error", "us", "of copy"):
        table.add_column(title, justify="left" if title in ("kernel", "blocks", "verdict") else "right")
    rows = [Row(**facts) for facts in report["kernels"]]
    for row in rows:
        blocks = " x ".join(map(str, (row.blocks or {}).values())) + (" (smaller)" if row.refused else "")
        error = "-" if row.error is None else f"{row.error:.1e} of {row.tolerance:.1e}"
        times = ("-", "-") if row.us is None else (f"{row.us:.1f}", f"{row.of_copy:.2f}")
        colour = "green" if row.verdict == "right" else "red"
        table.add_row(escape(row.name), blocks, f"[{colour}]{row.verdict}[/]", error, *times)
    console.print(table)
    for row in rows:
        if row.message:
            console.print(escape(f"{row.file}: {row.verdict}: {row.message}"), soft_wrap=True)
    shares = [row.of_copy for row in rows if row.of_copy]
    if shares:
        mean = math.exp(statistics.mean(map(math.log, shares)))
        console.print(
            f"of copy, geometric mean: {mean:.2f} of {report['machine']['copy_bytes_per_us']:.0f} MB/s"
        )
    console.print(f"{report['verdicts'].get('right', 0)} of {len(rows)} kernels build, run and are right")


def main(
    folders: Annotated[list[Path], typer.Argument(help="Folders of `kerf compile` or Plan.save.")],
    report: Annotated[Path, typer.Option(help="Where everything is written that was found.")] = Path(
        "npu_report.json"
    ),
    rounds: Annotated[int, typer.Option(min=1, help="Timed launches of a kernel.")] = ROUNDS,
    limit: Annotated[float, typer.Option(help="Seconds that a kernel may take.")] = 600,
    copy_bytes: Annotated[
        int, typer.Option(min=1, help="Of the copy that times are compared with.")
    ] = COPY_BYTES,
) -> None:
    """Builds, runs, compares and times the kernels of these folders on an Ascend card."""
    console, errors = Console(), Console(stderr=True, soft_wrap=True, highlight=False)
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH)
    with examiner(copy_bytes, rounds, limit) as process:
        try:
            kernels = find_kernels(folders)
            if faults := npu.missing():
                raise ValueError("\n  ".join(["no card can be used:", *faults]))
            process.start()
        except (ValueError, EOFError, TimeoutError) as error:
            words = str(error) or "the process with the card ended before it had copied anything"
            errors.print(f"npu_hardware: {words}", markup=False)
            raise typer.Exit(2) from None
        rows: list[Row] = []
        for row, path in track(kernels, "kernels", console=errors, disable=not errors.is_terminal):
            rows.append(process.examine(row, path))
            found = as_json(process.machine, rows)
            report.write_text(
                json.dumps(found, indent=1) + "\n"
            )  # also if the next one takes the machine down
    print_report(found, console)
    console.print(f"written: {report}", soft_wrap=True)
    raise typer.Exit(0 if found["passed"] else 1)


if __name__ == "__main__":
    typer.run(main)
