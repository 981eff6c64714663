"""What was compiled: the records of this process, the log, dumps, and the file that replays a failed compile.

KERF_LOG=info (or debug) prints one line per compile. KERF_DUMP=folder writes the text of every stage there.
"""

import dataclasses
import logging
import os
import shlex
import sys
import tempfile
import threading
import weakref
from typing import Any

from kerf import _core
from kerf.errors import KerfError

log = logging.getLogger("kerf")

PHASES = ("import", "graph", "lower", "schedule", "codegen", "build", "load", "store", "total")


@dataclasses.dataclass(frozen=True)
class Extern:
    """An operator that was not compiled, why, and the user's line.

    Attributes:
        bytes: of its arguments and results.
        is_library: a library call by design: a matrix product, convolution or attention.
    """

    op: str
    reason: str
    source: str
    bytes: int = 0
    is_library: bool = False


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One launch of a compiled kernel.

    Attributes:
        sources: the user's lines that it computes.
        members: (operation, why it is in this kernel) of what was fused.
        bytes_read, bytes_written: by one launch, at most the whole of each buffer.
    """

    name: str
    sources: tuple[str, ...]
    members: tuple[tuple[str, str], ...]
    bytes_read: int
    bytes_written: int


@dataclasses.dataclass(frozen=True)
class Compilation:
    """One compiled graph. Bytes are for the sizes with which it was traced.

    Attributes:
        name: "graph 3 backward".
        kind: "forward", "backward" or "inference".
        target: what it was compiled for: "cpu (llvm 19.1.7, znver4)", or "torch" where torch runs it.
        nodes: nodes of the graph as imported.
        kernels: kernels launched by a call.
        unique_kernels: kernels of different text.
        kernel_records: the launches, in order.
        externs: what runs as a library call.
        routes: (operator, "kernel" or "library", why, the user's line) of what both compute.
        seconds: PHASES -> elapsed seconds.
        bytes: moved by a call, by "kernels", "library" (calls by design) and "other_externs".
        peak_bytes: memory that a call takes for temporaries and results; 0 where it is not known.
        cache_hit: nothing had to be built.
        graph_text: the graph as imported, as kerf_opt reads it; FX's text of a graph that torch runs.
        opt_level: the option it was compiled with.
    """

    name: str
    kind: str
    target: str
    nodes: int
    kernels: int
    unique_kernels: int
    kernel_records: tuple[Kernel, ...]
    externs: tuple[Extern, ...]
    seconds: dict[str, float]
    bytes: dict[str, int]
    peak_bytes: int
    cache_hit: bool
    graph_text: str = dataclasses.field(repr=False)
    opt_level: int = 2
    routes: tuple[tuple[str, str, str, str], ...] = ()

    def source(self) -> str:
        """The text of every stage: graphs, programs, kernels, LLVM IR, plan. Compiles the graph once more."""
        if self.target == "torch":
            return self.graph_text
        options = _core.CompileOptions()
        options.opt_level = self.opt_level
        return _core.stages_of(self.graph_text, options)

    def to_dict(self) -> dict[str, Any]:
        """All attributes as plain dicts, lists, strings and numbers; `source()` stays out."""
        return _plain(dataclasses.asdict(self))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


# Records


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
_graphs: weakref.WeakKeyDictionary[_core.CompiledGraph, Compilation] = weakref.WeakKeyDictionary()
_graph_count = 0
_dump_count = 0
_said: set[str] = set()


def next_graph() -> int:
    """The number of the next graph that Dynamo hands over, from 0."""
    global _graph_count
    with _lock:
        _graph_count += 1
        return _graph_count - 1


def moved_bytes(kernels: tuple[Kernel, ...], externs: tuple[Extern, ...]) -> dict[str, int]:
    """Compilation.bytes."""
    return {
        "kernels": sum(kernel.bytes_read + kernel.bytes_written for kernel in kernels),
        "library": sum(extern.bytes for extern in externs if extern.is_library),
        "other_externs": sum(extern.bytes for extern in externs if not extern.is_library),
    }


def phase_seconds(import_seconds: float, compile_seconds: dict[str, float]) -> dict[str, float]:
    """Compilation.seconds, from the importer's time and the phases of the core."""
    known = {"import": import_seconds} | compile_seconds
    known["total"] = import_seconds + compile_seconds.get("total", 0.0)
    return {phase: known.get(phase, 0.0) for phase in PHASES}


def record(compilation: Compilation, graph: _core.CompiledGraph | None = None) -> None:
    """Adds a compilation, of `graph` unless torch runs it, and logs it."""
    with _lock:
        _compilations.append(compilation)
        if graph is not None:
            _graphs[graph] = compilation
    log.info(
        "%s: %d nodes, %d kernels (%d unique), %d externs, %.3f s",
        compilation.name,
        compilation.nodes,
        compilation.kernels,
        compilation.unique_kernels,
        len(compilation.externs),
        compilation.seconds["total"],
    )
    for kernel in compilation.kernel_records:
        for name, why in kernel.members:
            log.debug("%s: kernel %s: %s: %s", compilation.name, kernel.name, name, why)
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


def live_graphs() -> list[tuple[_core.CompiledGraph, Compilation]]:
    """Every compiled graph that can still be called, with its record; a reset changes nothing here."""
    with _lock:
        return list(_graphs.items())


def compilations() -> list[Compilation]:
    """The compilations of this process since the last reset, oldest first."""
    with _lock:
        return list(_compilations)


def reset() -> None:
    """Forgets compilations and partitions, frees memory kept for calls; compiled functions keep working."""
    global _graph_count
    with _lock:
        _compilations.clear()
        _partitions.clear()
        _graph_count = 0
    _core.release_memory()


# Log and dumps


def start_log() -> None:
    """Follows KERF_LOG, once, when the package is imported."""
    wanted = os.environ.get("KERF_LOG", "")
    if not wanted:
        return
    level = wanted.upper()
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("kerf: %(message)s"))
    log.addHandler(handler)
    log.propagate = False
    is_known = level in ("DEBUG", "INFO", "WARNING", "ERROR")
    log.setLevel(level if is_known else "INFO")
    if not is_known:
        log.warning("KERF_LOG=%s is unknown: debug, info, warning or error; info is used", wanted)


def warn_once(message: str) -> None:
    """A warning, the first time in this process."""
    with _lock:
        if message in _said:
            return
        _said.add(message)
    log.warning(message)


def dump_folder(parent: str, kind: str) -> str:
    """A new folder in `parent` for one compile, "0003-backward"; empty, and said once, if it cannot be."""
    global _dump_count
    try:
        os.makedirs(parent, exist_ok=True)
        while True:
            with _lock:
                taken = [int(name[:4]) for name in os.listdir(parent) if name[:4].isdecimal()]
                number = max([_dump_count - 1, *taken]) + 1
                _dump_count = number + 1
            path = os.path.join(parent, f"{number:04}-{kind}")
            try:
                os.mkdir(path)
                return path
            except FileExistsError:
                pass  # another process took it
    except OSError as error:
        warn_once(f"no stages are dumped: {error}")
        return ""


def with_replay(error: KerfError, passes: str, graph_text: str, folder: str | None) -> KerfError:
    """The same error, saying how to replay it; writes the graph to a file in `folder`, or the system's for
    temporary files.
    """
    command = f"{shlex.quote(sys.executable)} -m kerf.opt --passes={passes}"
    about = "".join(f"# {line}\n" for line in str(error).splitlines()[:20])
    try:
        if folder:
            os.makedirs(folder, exist_ok=True)
        handle, path = tempfile.mkstemp(prefix="kerf-failed-", suffix=".txt", dir=folder or None)
        with os.fdopen(handle, "w") as file:
            file.write(f"{about}# replay: {command} {path}\n{graph_text}")
    except OSError as problem:
        return type(error)(f"{error}\n(the graph could not be written for a replay: {problem})")
    return type(error)(f"{error}\nThis compile is replayed by: {command} {shlex.quote(path)}")
