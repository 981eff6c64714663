"""Reports as a table for people and as JSON."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kerf_npu_check.check import LEVELS, REQUIRED, Report, not_installed
from kerf_npu_check.kernel_file import TARGETS, tile_text

_COST = "calls/scalars/syncs"
_COLOURS = {"ok": "green", "not run": "dim"}


def print_reports(reports: Sequence[Report], console: Console) -> None:
    table = Table(header_style="bold")
    for title in ("kernel", "axes", "tile", "UB bytes", *LEVELS, "error", _COST):
        table.add_column(title, justify="right" if title in ("UB bytes", "error") else "left")
    for report in reports:
        kernel = report.kernel
        verdicts = (_verdict_cell(report, level) for level in LEVELS)
        row = (kernel.name, kernel.axes(), tile_text(kernel.blocks[0]), _buffer_cell(report))
        table.add_row(*map(escape, row), *verdicts, _error_cell(report), _cost_cell(report))
    console.print(table)
    for line in _notes(reports):
        console.print(escape(line), soft_wrap=True)


def _verdict_cell(report: Report, level: str) -> str:
    """One word if all runs of the level agree, else a line for each."""
    runs = report.answers[level]
    words = {run: answer["verdict"] for run, answer in runs.items()}
    if len(set(words.values())) == 1:
        words = {"": next(iter(words.values()))}
    return "\n".join(
        f"[{_COLOURS.get(word, 'red')}]{f'{run} {word}'.strip()}[/]" for run, word in words.items()
    )


def _buffer_cell(report: Report) -> str:
    """Of the target where the largest share is used."""
    used = [
        (answer["ub_bytes"] / TARGETS[target].ub_bytes, answer["ub_bytes"])
        for target, answer in report.answers["L3"].items()
        if answer.get("ub_bytes") is not None
    ]
    return f"{max(used)[1]:,} ({max(used)[0]:.0%})" if used else "-"


def _error_cell(report: Report) -> str:
    errors = [answer["error"] for _, _, answer in report.flat() if answer.get("error") is not None]
    return f"{max(errors):.1e} of {report.kernel.facts['tolerance']:.1e}" if errors else "-"


def _cost_cell(report: Report) -> str:
    """Of the first target that was planned: calls of vector code, single elements, synchronisations."""
    for answer in report.answers["L3"].values():
        if "calls" in answer:
            syncs = answer["flags"] + answer["barriers"]
            return f"{answer['calls']}/{answer['scalars']}/{syncs}"
    return "-"


def _notes(reports: Sequence[Report]) -> list[str]:
    """Every message, those of levels that were not run once; then the times and the sum."""
    lines: list[str] = []
    for report in reports:
        for level, run, answer in report.flat():
            if answer["verdict"] == "ok":
                continue
            whose = "" if answer["verdict"] == "not run" else f"{report.kernel.path}: "
            what = f"{level} {run}".strip()
            lines.append(f"{whose}{what}: {answer['verdict']}: {answer['message']}")
    passed = sum(report.passed() for report in reports)
    times = ", ".join(f"{level} {seconds:.2f} s" for level, seconds in _seconds(reports).items())
    lines += [f"time a kernel: {times}"] if times else []
    lines.append(f"{passed} of {len(reports)} kernels pass what was run")
    return list(dict.fromkeys(lines))


def _seconds(reports: Sequence[Report]) -> dict[str, float]:
    """The mean over the kernels, by level."""
    sums: dict[str, float] = {}
    for report in reports:
        for level, _, answer in report.flat():
            if "seconds" in answer:
                sums[level] = sums.get(level, 0.0) + answer["seconds"]
    return {level: seconds / len(reports) for level, seconds in sums.items()}


def all_passed(reports: Sequence[Report]) -> bool:
    """Every kernel passed what was run, and the levels that a claim rests on can be run."""
    return all(report.passed() for report in reports) and not any(map(not_installed, REQUIRED))


def as_json(reports: Sequence[Report]) -> dict[str, Any]:
    return {
        "passed": all_passed(reports),
        "not_installed": {level: why for level in LEVELS if (why := not_installed(level))},
        "seconds": _seconds(reports),
        "kernels": [
            {
                "name": report.kernel.name,
                "file": str(report.kernel.path),
                "target": report.kernel.target,
                "extents": report.kernel.facts["extents"],
                "blocks": report.kernel.blocks[0],
                "passed": report.passed(),
                "levels": report.answers,
            }
            for report in reports
        ],
    }
