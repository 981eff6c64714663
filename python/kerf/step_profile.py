"""kerf.profile: where the time of compiled calls goes, step by step."""

import contextlib
import dataclasses
from collections.abc import Iterator

from kerf import _core
from kerf.debug import Compilation, Extern, Kernel, live_graphs
from kerf.report import table

_SHOWN_STEPS = 40


@dataclasses.dataclass(frozen=True)
class StepTime:
    """A step of a compiled graph.

    Attributes:
        graph: the compilation's name.
        what: the kernel or library call.
        calls: how often it ran.
        seconds: of all calls, on the calling thread; a kernel's threads run within it.
    """

    graph: str
    what: Kernel | Extern
    calls: int
    seconds: float

    @property
    def is_library(self) -> bool:
        """A library call by design: a matrix product, convolution or attention."""
        return isinstance(self.what, Extern) and self.what.is_library

    @property
    def moved_bytes(self) -> int:
        """By one call, at the sizes with which it was traced."""
        if isinstance(self.what, Extern):
            return self.what.bytes
        return self.what.bytes_read + self.what.bytes_written


class Profile:
    """What `profile` counted; printed, it is a table of the steps that took longest.

    Attributes:
        steps: those that ran, in no particular order; filled when the block ends.
    """

    def __init__(self) -> None:
        self.steps: list[StepTime] = []

    def __str__(self) -> str:
        longest = sorted(self.steps, key=lambda step: -step.seconds)
        rows = [
            (
                f"{step.seconds * 1e3:.3f}",
                str(step.calls),
                f"{step.moved_bytes * step.calls / max(step.seconds, 1e-9) * 1e-9:.1f}",
                step.graph,
                step.what.name if isinstance(step.what, Kernel) else step.what.op,
                "\n".join(step.what.sources) if isinstance(step.what, Kernel) else step.what.source,
            )
            for step in longest[:_SHOWN_STEPS]
        ]
        library = sum(step.seconds for step in self.steps if step.is_library)
        total = sum(step.seconds for step in self.steps)
        lines = [
            f"{total * 1e3:.3f} ms in {len(self.steps)} steps, {library * 1e3:.3f} ms of it library calls"
        ]
        if len(longest) > _SHOWN_STEPS:
            lines.append(f"the {_SHOWN_STEPS} longest:")
        return "\n".join(lines + table(("ms", "calls", "GB/s", "graph", "step", "from"), rows))


@contextlib.contextmanager
def profile() -> Iterator[Profile]:
    """Counts the time of each kernel and library call of compiled graphs, in all threads, while it is open.

    One at a time: a second one starts the counts anew.
    """
    result = Profile()
    for graph, _ in live_graphs():
        graph.clear_step_times()
    _core.set_step_timing(True)
    try:
        yield result
    finally:
        _core.set_step_timing(False)
        for graph, record in live_graphs():
            result.steps += _steps(graph, record)


def _steps(graph: _core.CompiledGraph, record: Compilation) -> Iterator[StepTime]:
    kernels, externs = iter(record.kernel_records), iter(record.externs)
    for is_extern, calls, nanoseconds in graph.step_times():
        what = next(externs if is_extern else kernels)
        if calls:
            yield StepTime(record.name, what, calls, nanoseconds * 1e-9)
