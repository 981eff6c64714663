"""What was compiled: the list of compilations of this process, its table, and the log.

KERF_LOG=info (or debug) prints one line per compile. KERF_DUMP=folder writes the text of every stage there.
"""

import dataclasses
import logging
import os
import threading
from typing import Any

log = logging.getLogger("kerf")


@dataclasses.dataclass(frozen=True)
class Extern:
    """An operator that was not compiled, why, and the user's line."""

    op: str
    reason: str
    source: str


@dataclasses.dataclass(frozen=True)
class Compilation:
    """One compiled graph.

    Attributes:
        name: "graph 3 backward".
        kind: "forward", "backward" or "inference".
        nodes: nodes of the graph as imported.
        kernels: kernels launched by a call.
        unique_kernels: kernels of different text.
        externs: what runs as a library call.
        seconds: stage -> seconds.
        cache_hit: nothing had to be built.
        report: the record of the C++ driver, None for a graph that runs as torch runs it.
    """

    name: str
    kind: str
    nodes: int
    kernels: int
    unique_kernels: int
    externs: tuple[Extern, ...]
    seconds: dict[str, float]
    cache_hit: bool
    report: Any


@dataclasses.dataclass(frozen=True)
class Partition:
    """One joint graph that was cut into forward and backward.

    Attributes:
        name: "graph 3".
        by: the partitioner, see options.Options.
        reason: why it is not the one that the options ask for; else empty.
        nodes: nodes of the joint graph.
        kept_bytes: what the forward pass keeps besides parameters; None if torch's partitioner cut.
        seconds: the cut and the split into two graphs.
    """

    name: str
    by: str
    reason: str
    nodes: int
    kept_bytes: int | None
    seconds: float


_lock = threading.Lock()
_compilations: list[Compilation] = []
_partitions: list[Partition] = []
_graph_count = 0


def next_graph() -> int:
    """The number of the next graph that Dynamo hands over, from 0."""
    global _graph_count
    with _lock:
        _graph_count += 1
        return _graph_count - 1


def record(compilation: Compilation) -> None:
    """Adds a compilation, and logs it."""
    with _lock:
        _compilations.append(compilation)
    log.info(
        "%s: %d nodes, %d kernels (%d unique), %d externs, %.3f s",
        compilation.name,
        compilation.nodes,
        compilation.kernels,
        compilation.unique_kernels,
        len(compilation.externs),
        sum(compilation.seconds.values()),
    )
    for extern in compilation.externs:
        log.debug(
            "%s: %s is not compiled: %s (%s)", compilation.name, extern.op, extern.reason, extern.source
        )


def record_partition(cut: Partition) -> None:
    """Adds a partition, and logs it."""
    with _lock:
        _partitions.append(cut)
    log.info("%s: %d nodes cut by %s, %.3f s %s", cut.name, cut.nodes, cut.by, cut.seconds, cut.reason)


def partitions() -> list[Partition]:
    """The joint graphs cut by this process since the last reset, oldest first."""
    with _lock:
        return list(_partitions)


def compilations() -> list[Compilation]:
    """The compilations of this process since the last reset, oldest first."""
    with _lock:
        return list(_compilations)


def reset() -> None:
    """Forgets compilations and partitions; compiled functions keep working."""
    global _graph_count
    with _lock:
        _compilations.clear()
        _partitions.clear()
        _graph_count = 0


def explain() -> None:
    """Prints two tables: the compilations, and the operators that were not compiled with the reasons."""
    from rich.console import Console
    from rich.table import Table

    graphs = Table("graph", "nodes", "kernels", "unique", "externs", "seconds", title="Compiled graphs")
    reasons: dict[tuple[str, str], list[str]] = {}
    for c in compilations():
        graphs.add_row(
            c.name,
            str(c.nodes),
            str(c.kernels),
            str(c.unique_kernels),
            str(len(c.externs)),
            f"{sum(c.seconds.values()):.3f}",
        )
        for extern in c.externs:
            reasons.setdefault((extern.op, extern.reason), []).append(extern.source)
    externs = Table("operator", "calls", "reason", "first line", title="Not compiled")
    for (op, reason), sources in sorted(reasons.items(), key=lambda item: -len(item[1])):
        externs.add_row(op, str(len(sources)), reason, sources[0])
    console = Console()
    console.print(graphs)
    if reasons:
        console.print(externs)


def start_log() -> None:
    """Follows KERF_LOG, once, when the package is imported."""
    level = os.environ.get("KERF_LOG", "").upper()
    if not level:
        return
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        level = "INFO"
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("kerf: %(message)s"))
    log.addHandler(handler)
    log.setLevel(level)
