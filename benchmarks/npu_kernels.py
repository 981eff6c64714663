#!/usr/bin/env python3
"""The kernels of models for Ascend NPUs, all through the checks that need no card (docs/npu_check.md).

    benchmarks/npu_kernels.py                                   # everything: 7 models, 3 targets
    benchmarks/npu_kernels.py --model bert --target 910B3 --work /tmp/kernels --output found.json

Each model is traced once, forward and backward, and compiled for every target. Kernels that differ in names
only are checked once, over all models, and once for targets that share what a level looks at. L1 and L3 see
full extents, L2 and L2b cut ones. The status is 0 if all bars are met. C++ ms: the processor's, a launch.
"""

import ast
import collections
import dataclasses
import importlib
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "examples"), str(ROOT / "benchmarks")]

from kerf.offline.compile import Plan, compile_graphs, trace  # noqa: E402
from kerf_npu_check.check import LEVELS, Report, check_all, not_installed  # noqa: E402
from kerf_npu_check.kernel_file import TARGETS, KernelFile, find_kernel_files  # noqa: E402

MODELS = ("flux", "bert", "qwen3", "t5", "resnet50", "convnextv2", "swin")
INTERPRETED = 40  # kernels at L2, which takes seconds for each
# The bars of the table, in the order of its verdict.
LEAST_SHARE = 0.95
MOST_MILLISECONDS = 2.0
MOST_MINUTES = 20.0
_FILE_WIDTH = 160
_NAME = re.compile(r"(?<![\w.\"])[A-Za-z_]\w*")


# Models to kernel files, a process each


@dataclasses.dataclass
class Compiled:
    """A model on a target: its plan in numbers, a file for each kernel that differs by more than names."""

    model: str
    target: str
    launches: int
    kernels: int
    share: float
    not_affine: int
    milliseconds: float  # of C++, a launch
    reasons: dict[str, int]  # of library calls that are none by design: bytes
    files: dict[str, str]  # canonical text: path


def traced(model: str) -> list[Any]:
    if model == "flux":
        flux = importlib.import_module("flux_blocks")
        config = flux.FluxConfig()
        with torch.device("meta"):
            blocks = flux.FluxBlocks(config)
        return trace(blocks, flux.example_inputs(config, device="meta"), training=True, dynamic=False)
    models = importlib.import_module("models")
    workload = models.build(models.MODELS[model])

    def loss(**inputs: torch.Tensor) -> torch.Tensor:
        return workload.loss(workload.model, inputs)

    return trace(loss, workload.inputs, training=True, dynamic=False)


def compile_model(model: str, targets: Sequence[str], folder: Path, expected: bool) -> list[Compiled]:
    torch.set_num_threads(1)
    graphs = traced(model)
    result: list[Compiled] = []
    for target in targets:
        plan = compile_graphs(graphs, f"npu:{target}")
        known = {key: path for other in result for key, path in other.files.items()}
        result.append(summary(model, target, plan, known, folder / f"{model}_{target}", expected))
    return result


def summary(
    model: str, target: str, plan: Plan, known: dict[str, str], folder: Path, expected: bool
) -> Compiled:
    """Saves the kernels that are not `known` from another target of the model."""
    different = {canonical(kernel.text): kernel for kernel in plan.kernels}
    fresh = [key for key in different if key not in known]
    only_fresh = dataclasses.replace(plan, kernels=tuple(different[key] for key in fresh))
    saved = only_fresh.save(folder, expected=expected)
    files = {key: known[key] for key in different if key in known}
    files |= {key: str(path) for key, path in zip(fresh, saved, strict=True)}
    reasons: collections.Counter[str] = collections.Counter()
    for extern in plan.externs:
        if not extern.is_library:
            reasons[f"{extern.op}: {extern.reason}"] += extern.bytes
    launches = sum(kernel.uses for kernel in plan.kernels)
    return Compiled(
        model=model,
        target=target,
        launches=launches,
        kernels=len(plan.kernels),
        share=plan.share,
        not_affine=sum(not access.affine for kernel in plan.kernels for access in kernel.accesses),
        milliseconds=plan.seconds * 1e3 / max(launches, 1),
        reasons=dict(reasons.most_common()),
        files=files,
    )


def canonical(text: str) -> str:
    """A kernel file's functions and facts, without names that it gives, its target and number of cores."""
    begin, facts = text.index("@triton.jit"), text.index("KERNEL = {")
    code = text[begin:facts]
    own: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef):
            own.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
    numbers: dict[str, str] = {}

    def rename(name: re.Match[str]) -> str:
        return numbers.setdefault(name[0], f"n{len(numbers)}") if name[0] in own else name[0]

    described = re.match(r"KERNEL = (\{.*?^\})", text[facts:], re.MULTILINE | re.DOTALL)
    assert described is not None
    kept = json.loads(described[1])
    del kept["name"], kept["target"], kept["cores"]
    for buffer in kept["buffers"]:
        del buffer["name"]
    return ast.unparse(ast.parse(_NAME.sub(rename, code))) + json.dumps(
        kept
    )  # lines break by length of names


# Kernel files through the levels


@dataclasses.dataclass
class Work:
    """A kernel and the targets that it is for."""

    file: KernelFile
    targets: list[str]
    answers: dict[str, dict[str, dict[str, Any]]] = dataclasses.field(default_factory=dict)

    def passed(self, level: str, target: str, run: str = "") -> bool | None:
        """None: the level was not run. L1 and L3 count for the target, other levels for all."""
        runs = self.answers.get(level, {})
        if not runs or "" in runs and runs[""]["verdict"] == "not run":
            return None
        if level == "L1":
            run = "A5" if TARGETS[target].a5 else "A2/A3"
        elif level == "L3":
            run = target
        return runs[run]["verdict"] == "ok"


def distinct(compiled: Sequence[Compiled]) -> dict[str, Work]:
    """Every kernel once, over all models and targets."""
    works: dict[str, Work] = {}
    folders = {Path(path).parent for one in compiled for path in one.files.values()}
    files = {str(f.path): f for folder in sorted(folders) for f in find_kernel_files([folder])}
    for one in compiled:
        for key, path in one.files.items():
            work = works.setdefault(key, Work(files[path], []))
            if one.target not in work.targets:
                work.targets.append(one.target)
    return works


def run_checks(works: Sequence[Work], levels: Sequence[str], jobs: int, tell: Any) -> None:
    """Fills in `answers`: the levels without L2 on all, and L2 on a fixed number of them."""
    groups: dict[tuple[str, ...], list[Work]] = {}
    for work in works:
        groups.setdefault(tuple(work.targets), []).append(work)
    batches = [([level for level in levels if level != "L2"], *group) for group in groups.items()]
    if "L2" in levels:
        batches.append((["L2"], (), every(works, INTERPRETED)))
    for asked, targets, members in batches:
        reports = check_all([work.file for work in members], asked, targets, jobs, tell)
        for work, report in zip(members, reports, strict=True):
            work.answers |= {level: report.answers[level] for level in asked}


def every(works: Sequence[Work], count: int) -> list[Work]:
    """`count` of them, evenly over the list."""
    step = max(len(works) / count, 1)
    return [works[int(i * step)] for i in range(min(count, len(works)))]


# What was found


def rows(compiled: Sequence[Compiled], works: dict[str, Work]) -> Iterator[dict[str, Any]]:
    for one in compiled:
        members = [works[key] for key in one.files]
        row = {"model": one.model, "target": one.target, "kernels": one.kernels, "distinct": len(members)}
        for level, run in COLUMNS.values():
            found = [work.passed(level, one.target, run) for work in members]
            row[f"{level} {run}".strip()] = [found.count(True), len(found) - found.count(None)]
        facts = dataclasses.asdict(one)
        yield row | {
            name: facts[name] for name in ("share", "not_affine", "milliseconds", "launches", "reasons")
        }


COLUMNS = {
    "L0": ("L0", ""),
    "L1": ("L1", ""),
    "L2": ("L2", ""),
    "L2b": ("L2b", "plain"),
    "L2b vendor": ("L2b", "vendor"),
    "L3": ("L3", ""),
}


def bars(table: Sequence[dict[str, Any]], levels: Sequence[str], minutes: float) -> dict[str, str]:
    """Each bar: "met", or what is not."""
    result = {}
    for level, run in COLUMNS.values():
        name = f"{level} {run}".strip()
        if level in levels:
            bad = [
                f"{r['model']} on {r['target']} {r[name][0]}/{r[name][1]}"
                for r in table
                if r[name][0] < r[name][1]
            ]
            result[f"{name}: every kernel"] = not_installed(level) or ", ".join(bad) or "met"
    limits = {
        f"share of bytes at least {LEAST_SHARE:.0%}": [
            f"{r['model']} on {r['target']} {r['share']:.1%}" for r in table if r["share"] < LEAST_SHARE
        ],
        "every access affine": [f"{r['model']} on {r['target']}" for r in table if r["not_affine"]],
        f"C++ at most {MOST_MILLISECONDS:.0f} ms a kernel": [
            f"{r['model']} on {r['target']} {r['milliseconds']:.1f} ms"
            for r in table
            if r["milliseconds"] > MOST_MILLISECONDS
        ],
        f"at most {MOST_MINUTES:.0f} minutes": [f"{minutes:.1f}"] if minutes > MOST_MINUTES else [],
    }
    return result | {name: ", ".join(bad) or "met" for name, bad in limits.items()}


def print_table(table: Sequence[dict[str, Any]], console: Console) -> None:
    shown = Table(header_style="bold")
    for title in ("model", "target"):
        shown.add_column(title)
    for title in ("kernels", "distinct", *COLUMNS, "share", "not affine", "C++ ms"):
        shown.add_column(title, justify="right")
    for row in table:
        counts = [row[f"{level} {run}".strip()] for level, run in COLUMNS.values()]
        cells = [_cell(*count) for count in counts]
        numbers = (f"{row['share']:.1%}", str(row["not_affine"]), f"{row['milliseconds']:.2f}")
        whole = (str(row["kernels"]), str(row["distinct"]))
        shown.add_row(row["model"], row["target"], *whole, *cells, *numbers)
    console.print(shown)


def _cell(passed: int, ran: int) -> str:
    if not ran:
        return "[dim]not run[/]"
    return f"[{'green' if passed == ran else 'red'}]{passed}/{ran}[/]"


def avoided(table: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Library calls that are none by design, with their rule, by the most bytes that a row has of them."""
    most: dict[str, tuple[int, str]] = {}
    for row in table:
        for reason, moved in row["reasons"].items():
            reason = reason.replace(f"npu:{row['target']}: ", "")
            most[reason] = max(most.get(reason, (0, "")), (moved, row["model"]))
    for reason, (moved, model) in sorted(most.items(), key=lambda item: -item[1][0]):
        yield f"library call: {reason}: {moved / 1e6:.1f} MB in {model}"


def faults(works: dict[str, Work]) -> Iterator[str]:
    for work in works.values():
        for level, run, answer in Report(work.file, work.answers).flat():
            if answer["verdict"] not in ("ok", "not run"):
                what = f"{level} {run}".strip()
                yield f"{work.file.path}: {what}: {answer['verdict']}: {answer['message']}"


def seconds_by_level(works: dict[str, Work]) -> dict[str, float]:
    total: dict[str, float] = {}
    for work in works.values():
        for level, run, answer in Report(work.file, work.answers).flat():
            name = f"{level} {run}".strip()
            total[name] = total.get(name, 0.0) + answer.get("seconds", 0.0)
    return total


def user_seconds() -> float:
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measure(
    models: Sequence[str],
    targets: Sequence[str],
    levels: Sequence[str],
    jobs: int,
    folder: Path,
    bar: Progress,
) -> tuple[list[Compiled], dict[str, Work], dict[str, float]]:
    begin = time.monotonic()
    task = bar.add_task("compiling models", total=len(models))
    compiled: list[Compiled] = []
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        expected = "L2" in levels or "L2b" in levels
        begun = [pool.submit(compile_model, model, targets, folder, expected) for model in models]
        for found in begun:
            compiled += found.result()
            bar.advance(task)
    works = distinct(compiled)
    compiling = time.monotonic() - begin
    others = [level for level in levels if level != "L2"]
    total = (len(works) if others else 0) + (min(INTERPRETED, len(works)) if "L2" in levels else 0)
    task = bar.add_task("checking kernels", total=total)
    run_checks(list(works.values()), levels, jobs, lambda report: bar.advance(task))
    return compiled, works, {"compiling": compiling, "all": time.monotonic() - begin}


def main(
    model: Annotated[list[str], typer.Option(help="Again for more.")] = list(MODELS),  # noqa: B006
    target: Annotated[list[str], typer.Option(help="Again for more.")] = list(TARGETS),  # noqa: B006
    levels: Annotated[str, typer.Option(help="Which of L0, L1, L2, L2b, L3.")] = ",".join(LEVELS),
    jobs: Annotated[int, typer.Option(min=1, help="Models, then kernels at a time.")] = 2,
    work: Annotated[Path | None, typer.Option(help="Keep the kernel files here.")] = None,
    output: Annotated[Path | None, typer.Option(help="Everything as JSON.")] = None,
) -> None:
    """All distinct kernels of models for Ascend NPUs through L0 to L3: table, faults, bars."""
    console, errors = Console(), Console(stderr=True)
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH)
    asked = [level for level in LEVELS if level in levels.split(",")]
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as temporary, Progress(*columns, console=errors) as bar:
        folder = work or Path(temporary)
        compiled, works, seconds = measure(model, target, asked, jobs, folder, bar)
        table = list(rows(compiled, works))
        bad = list(faults(works))
    verdicts = bars(table, asked, seconds["all"] / 60)
    print_table(table, console)
    for line in [*bad, *avoided(table)]:
        console.print(line, markup=False, soft_wrap=True, highlight=False)
    by_level = seconds_by_level(works)
    spent = ", ".join(f"{name} {value:.0f} s" for name, value in by_level.items() if value)
    console.print(
        f"{len(works)} distinct kernels; {seconds['all']:.0f} s, {user_seconds():.0f} s of user time"
    )
    console.print(f"compiling models {seconds['compiling']:.0f} s; then, in {jobs} at a time: {spent}")
    for name, verdict in verdicts.items():
        console.print(
            f"{'met' if verdict == 'met' else 'NOT MET'}  {name}{'' if verdict == 'met' else ': ' + verdict}"
        )
    if output:
        found = {"table": table, "bars": verdicts, "faults": bad, "seconds": seconds | by_level}
        output.write_text(json.dumps(found | {"user_seconds": user_seconds()}, indent=1) + "\n")
    raise typer.Exit(0 if set(verdicts.values()) == {"met"} else 1)


if __name__ == "__main__":
    typer.run(main)
