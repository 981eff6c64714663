"""kerf.explain: the compilations as tables."""

import contextlib
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from kerf.backend import kerf_backend
from kerf.debug import Compilation, Kernel, compilations

_SHOWN_MEMBERS = 6


def explain(model: Callable[..., Any] | None = None, *inputs: Any, **named_inputs: Any) -> None:
    """Prints tables of compiled graphs: kernels with the lines they come from, why their parts are together
    and the bytes they move; library calls with their reasons.

    Args:
        model: a module or function. It is compiled afresh and runs once on the inputs, backward included
            where its results need gradients; gradients, buffers and the random state stay as they were.
            Without it the tables are about every compilation so far.
    """
    records = compilations() if model is None else _compile_afresh(model, inputs, named_inputs)
    print("\n\n".join(map(describe, records)) if records else "nothing was compiled")


def describe(record: Compilation) -> str:
    """The tables of one compilation."""
    moved = record.bytes
    outside = moved["kernels"] + moved["other_externs"]
    share = f"; {100 * moved['kernels'] / outside:.0f} % of what is no library call" if outside else ""
    lines = [
        f"{record.name}, {record.target}: {record.nodes} nodes, {record.kernels} kernels "
        f"({record.unique_kernels} unique), {len(record.externs)} externs, {record.seconds['total']:.3f} s"
        f"{', from the cache' if record.cache_hit else ''}, peak {_size(record.peak_bytes)}",
        f"moved: {_size(moved['kernels'])} by kernels, {_size(moved['library'])} by library calls, "
        f"{_size(moved['other_externs'])} by other externs{share}",
    ]
    alike: dict[Any, list[Kernel]] = {}
    for kernel in record.kernel_records:
        alike.setdefault(_likeness(kernel), []).append(kernel)
    kernels = [
        (str(len(group)), group[0].name, _size(group[0].bytes_read), _size(group[0].bytes_written))
        + ("\n".join(group[0].sources), _why(group[0]))
        for group in alike.values()
    ]
    if kernels:
        lines += table(("calls", "kernel", "reads", "writes", "from", "why together"), kernels)
    calls = Counter((e.op, e.reason, e.source) for e in record.externs)
    moved_by = Counter[tuple[str, str, str]]()
    for extern in record.externs:
        moved_by[extern.op, extern.reason, extern.source] += extern.bytes
    externs = [
        (str(count), op, _size(moved_by[op, reason, source]), source, reason)
        for (op, reason, source), count in calls.most_common()
    ]
    if externs:
        lines += table(("calls", "extern", "moves", "from", "why not compiled"), externs)
    routes = Counter((op, choice, source, why) for op, choice, why, source in record.routes)
    if routes:
        rows = [(str(count), *route) for route, count in routes.most_common()]
        lines += table(("calls", "operator", "runs as", "from", "by which rule"), rows)
    return "\n".join(lines)


def _likeness(kernel: Kernel) -> Any:
    """Equal for the same kernel of repeated layers: all but the numbers of nodes."""
    parts = (kernel.name, *kernel.sources, *(f"{name}: {why}" for name, why in kernel.members))
    return re.sub(r"_\d+", "", "\n".join(parts)), kernel.bytes_read, kernel.bytes_written


def _why(kernel: Kernel) -> str:
    if len(kernel.members) == 1:
        return kernel.members[0][1]
    parts = [f"{name}: {why}" for name, why in kernel.members[:_SHOWN_MEMBERS]]
    rest = len(kernel.members) - _SHOWN_MEMBERS
    return "\n".join(parts + ([f"and {rest} more"] if rest > 0 else []))


def _size(count: int) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned lines; the last two columns, and names, are wrapped to the terminal's width."""
    total = max(shutil.get_terminal_size((140, 24)).columns, 100)
    widths = [
        max(len(line) for row in (header, *rows) for line in row[i].split("\n")) for i in range(len(header))
    ]
    widths[1] = min(widths[1], 32)
    left = total - sum(widths[:-2]) - 2 * len(widths)
    widths[-2] = min(widths[-2], max(left // 2, left - widths[-1]))
    widths[-1] = min(widths[-1], left - widths[-2])
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [
            [piece for line in cell.split("\n") for piece in textwrap.wrap(line, width) or [""]]
            for cell, width in zip(row, widths, strict=True)
        ]
        for i in range(max(map(len, cells))):
            texts = [cell[i] if i < len(cell) else "" for cell in cells]
            joined = "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True))
            lines.append("  " + joined.rstrip())
    return lines


# A compile of its own


def _compile_afresh(
    model: Callable[..., Any], inputs: Sequence[Any], named: dict[str, Any]
) -> list[Compilation]:
    """The records of compiling and running `model` once, whatever was compiled of it before."""
    original = getattr(model, "_orig_mod", None) or getattr(model, "_torchdynamo_orig_callable", model)

    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return kerf_backend(gm, example_inputs, options={"cache": False})  # has an identity of its own

    known = {id(record) for record in compilations()}
    with _state_kept(original), torch._dynamo.config.patch(recompile_limit=1 << 16):
        results = torch.compile(original, backend=backend)(*inputs, **named)
        _run_backward(results, original, (inputs, named))
    return [record for record in compilations() if id(record) not in known]


def _run_backward(results: Any, original: Callable[..., Any], inputs: Any) -> None:
    """Backward from all results; the gradients are thrown away."""
    leaves = [r for r in _pytree.tree_leaves(results) if isinstance(r, torch.Tensor)]
    differentiable = [r for r in leaves if r.requires_grad]
    owners = list(original.parameters()) if isinstance(original, torch.nn.Module) else []
    owners += [i for i in _pytree.tree_leaves(inputs) if isinstance(i, torch.Tensor)]
    wanted = [tensor for tensor in owners if tensor.requires_grad]
    if differentiable and wanted:
        ones = [torch.ones_like(r) for r in differentiable]
        torch.autograd.grad(differentiable, wanted, ones, allow_unused=True)


@contextlib.contextmanager
def _state_kept(model: Callable[..., Any]) -> Iterator[None]:
    buffers = dict(model.named_buffers()) if isinstance(model, torch.nn.Module) else {}
    before = {name: buffer.clone() for name, buffer in buffers.items()}
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            with torch.no_grad():
                for name, buffer in buffers.items():
                    buffer.copy_(before[name])
