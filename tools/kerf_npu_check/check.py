"""Kernels through the levels. A verdict is "ok", "not run", or a word for what is wrong."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kerf import _core

from kerf_npu_check import environment
from kerf_npu_check.kernel_file import TARGETS, KernelFile, Target, tile_text
from kerf_npu_check.process import Answer, Worker

LEVELS = ("L0", "L1", "L2", "L2b", "L3")
# Without these nothing can be said of a kernel.
REQUIRED = ("L1", "L3")
_LIMIT = 300.0


@dataclass
class Report:
    """What became of one kernel: level, then what it was run as (a mode or a target), then the answer."""

    kernel: KernelFile
    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)

    def flat(self) -> Iterator[tuple[str, str, Answer]]:
        for level, runs in self.answers.items():
            for run, answer in runs.items():
                yield level, run, answer

    def passed(self) -> bool:
        """What was run says "ok", and something was run."""
        return {answer["verdict"] for _, _, answer in self.flat()} in ({"ok"}, {"ok", "not run"})


def not_run(why: str) -> Answer:
    return {"verdict": "not run", "message": why}


def not_installed(level: str) -> str | None:
    """Why `level` cannot be run, or None."""
    lacking = environment.missing(level)
    return f"{', '.join(lacking)} not installed: {environment.INSTALL_LINE}" if lacking else None


class Workers(NamedTuple):
    compiler: Worker
    interpreter: Worker


class Checker:
    """Runs the chosen levels for the chosen targets, or else those that the kernel is meant for.

    Linalg texts lie in `folder`.
    """

    def __init__(self, levels: Sequence[str], targets: Sequence[str], folder: Path) -> None:
        self._targets = targets
        self._folder = folder
        self._why_not = {level: not_installed(level) for level in LEVELS} | {
            level: "not asked for" for level in LEVELS if level not in levels
        }

    def check(self, kernel: KernelFile, workers: Workers) -> Report:
        report = Report(kernel)
        runs = (self._level0, self._level1, self._level2, self._level2b, self._level3)
        for level, run in zip(LEVELS, runs, strict=True):
            why_not = self._why_not[level]
            report.answers[level] = {"": not_run(why_not)} if why_not else run(kernel, workers)
        return report

    def _level0(self, kernel: KernelFile, _: Workers) -> dict[str, Answer]:
        broken = _core.check_kernel_text(kernel.text, kernel.target)
        found = [f"line {line}: {rule}: {message}" for line, rule, message in broken]
        return {"": {"verdict": "reject" if found else "ok", "message": "; ".join(found)}}

    def _level1(self, kernel: KernelFile, workers: Workers) -> dict[str, Answer]:
        modes = {TARGETS[name].a5 for name in self._targets or kernel.fitting_targets()}
        return {
            "A5" if a5 else "A2/A3": self._lower(kernel, workers, a5, kernel.blocks[0])
            for a5 in sorted(modes)
        }

    def _level2(self, kernel: KernelFile, workers: Workers) -> dict[str, Answer]:
        request = self._request("level2", kernel)
        return {"": workers.interpreter.ask(request, _LIMIT)}

    def _level2b(self, kernel: KernelFile, workers: Workers) -> dict[str, Answer]:
        answers = {}
        for run, vendor in (("plain", False), ("vendor", True)):
            request = self._request("level2b", kernel, vendor=vendor)
            answers[run] = workers.compiler.ask(request, _LIMIT)
        return answers

    def _level3(self, kernel: KernelFile, workers: Workers) -> dict[str, Answer]:
        answers = {}
        for name in self._targets or kernel.fitting_targets():
            target = TARGETS[name]
            answer = self._plan(kernel, workers, target, kernel.blocks[0])
            if answer["verdict"] == "retry" or answer.get("too_big"):
                answer["message"] += f"; {self._smaller(kernel, workers, target)}"
            answers[name] = answer
        return answers

    def _smaller(self, kernel: KernelFile, workers: Workers, target: Target) -> str:
        for blocks in kernel.blocks[1:]:
            if self._plan(kernel, workers, target, blocks)["verdict"] == "ok":
                return f"{tile_text(blocks)} fits"
        return "no other choice of blocks fits" if kernel.blocks[1:] else "there is no other choice of blocks"

    def _plan(self, kernel: KernelFile, workers: Workers, target: Target, blocks: dict[str, int]) -> Answer:
        """Level 3 of one choice of blocks, lowered by level 1 if it was not yet."""
        linalg = self._linalg(kernel, target.a5, blocks)
        if not linalg.exists():
            lowered = self._lower(kernel, workers, target.a5, blocks)
            if not linalg.exists():
                return not_run(f"level 1 came to no linalg: {lowered['verdict']}")
        request = self._request("level3", kernel, linalg=str(linalg), target=target.bishengir)
        return workers.compiler.ask(request, _LIMIT)

    def _lower(self, kernel: KernelFile, workers: Workers, a5: bool, blocks: dict[str, int]) -> Answer:
        output = str(self._linalg(kernel, a5, blocks))
        request = self._request("level1", kernel, a5=a5, blocks=blocks, output=output)
        return workers.compiler.ask(request, _LIMIT)

    def _linalg(self, kernel: KernelFile, a5: bool, blocks: dict[str, int]) -> Path:
        words = [f"{id(kernel):x}", "a5" if a5 else "a2", *map(str, blocks.values())]
        return self._folder / f"{'-'.join(words)}.mlir"

    @staticmethod
    def _request(level: str, kernel: KernelFile, **more: Any) -> dict[str, Any]:
        path = kernel.path.resolve()
        tools = {
            "compilers": environment.COMPILERS,
            "translate": environment.TRANSLATE,
            "shim": environment.SHIM,
        }
        more |= {name: str(environment.home() / place) for name, place in tools.items()}
        more |= {"path": str(path), "values": str(path.with_suffix(".npz"))}
        return {"level": level, "kernel": kernel.facts, **more}


def check_all(
    kernels: Sequence[KernelFile],
    levels: Sequence[str],
    targets: Sequence[str],
    jobs: int,
    tell: Callable[[Report], None],
) -> list[Report]:
    """In the order of `kernels`; `tell` hears of each when it is done."""
    with tempfile.TemporaryDirectory() as folder, _workers_of_threads() as own:
        checker = Checker(levels, targets, Path(folder))

        def one(kernel: KernelFile) -> Report:
            report = checker.check(kernel, own())
            tell(report)
            return report

        with ThreadPoolExecutor(jobs) as threads:
            return list(threads.map(one, kernels))


@contextmanager
def _workers_of_threads() -> Iterator[Callable[[], Workers]]:
    """Each thread has workers of its own; all end with the block."""
    local = threading.local()
    started: list[Workers] = []

    def own() -> Workers:
        if not hasattr(local, "workers"):
            local.workers = Workers(Worker(interpreter=False), Worker(interpreter=True))
            started.append(local.workers)
        return local.workers

    try:
        yield own
    finally:
        for workers in started:
            for worker in workers:
                worker.close()
