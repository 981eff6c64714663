"""Kernel texts for targets that compute in tiles (Ascend NPUs, NVIDIA GPUs), made without the device.

A model is traced as torch.compile traces it; every graph, forward and backward, becomes kernels of Triton
text and library calls. Nothing is built or run.
"""

import dataclasses
import functools
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.utils import _pytree as pytree

from kerf import _core
from kerf.decomp import decompositions, whole_operators
from kerf.errors import InternalError, UserError
from kerf.fx_import import import_graph
from kerf.options import resolve
from kerf.partition import correct_side_dtypes, partition

_MOST_ROUNDS = 50


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel as text.

    Attributes:
        name: of the function.
        axes: extents in order; an int, or text over sizes where it is dynamic.
        accesses: loads and stores: .buffer, .is_store, .index (over the axes), .affine.
        text: the file: imports, functions, the kernel, and its description KERNEL.
        source: the user's lines that it computes.
        graph: the graph that it belongs to, "0 forward".
        uses: how many launches run it, in all graphs.
        when: a condition on sizes, where a test at run time picks between two plans of its graph; else empty.
    """

    name: str
    axes: tuple[int | str, ...]
    accesses: tuple[Any, ...]
    text: str
    source: tuple[str, ...]
    graph: str
    uses: int
    core: Any = dataclasses.field(repr=False)
    when: str = ""


@dataclasses.dataclass(frozen=True)
class Extern:
    """A library call: its operator, why it is no kernel, the user's line, the bytes it moves; Kernel.when."""

    op: str
    reason: str
    source: str
    graph: str
    bytes: int
    is_library: bool
    when: str = ""


@dataclasses.dataclass(frozen=True)
class Route:
    """Of an operator that both a kernel and a library call compute: which of them, and the rule's reason.

    Attributes:
        choice: "kernel" or "library".
        when: a condition on sizes under which this holds; empty: always.
    """

    op: str
    choice: str
    reason: str
    source: str
    graph: str
    when: str = ""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a model becomes on a target.

    Attributes:
        target: its name.
        kernels: each different one once.
        externs: every library call.
        kernel_bytes: that all launches move; of two plans of a graph, those of the one for narrow rows.
        seconds: of the processor in C++, all rounds of all graphs.
        routes: what was decided about operators that both a kernel and a library call compute.
    """

    target: str
    kernels: tuple[Kernel, ...]
    externs: tuple[Extern, ...]
    kernel_bytes: int
    seconds: float
    routes: tuple[Route, ...] = ()

    @property
    def share(self) -> float:
        """Bytes moved by kernels, of all that are not matrix products, convolutions or attention."""
        others = sum(e.bytes for e in self.externs if not e.is_library and ">" not in e.when)
        total = self.kernel_bytes + others
        return self.kernel_bytes / total if total else 1.0

    def report(self) -> str:
        """The kernels with their axes, the library calls with their reasons, and the rules that chose."""

        def where(what: Kernel | Extern | Route) -> str:
            return f" where {what.when}" if what.when else ""

        lines = [f"{len(self.kernels)} kernels for {self.target}, {self.share:.1%} of the bytes"]
        lines += [f"  {k.graph}  {k.name}  {list(k.axes)}{where(k)}" for k in self.kernels]
        lines += [f"  {e.graph}  {e.op}{where(e)}: {e.reason}  {e.source}" for e in self.externs]
        calls = Counter(f"{r.op} as {r.choice}{where(r)}: {r.reason}" for r in self.routes)
        lines += [f"  {count} x {text}" for text, count in calls.items()]
        return "\n".join(lines)

    def save(self, folder: str | Path, *, expected: bool = True) -> list[Path]:
        """Writes a file per kernel that runs and checks itself, and plan.json; returns the kernels' paths.

        Args:
            folder: made if it is not there.
            expected: with the interpreter's numbers at cut extents, which files need to check themselves.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tail = Path(__file__).with_name("kernel_main.py").read_text()
        paths = []
        for position, kernel in enumerate(self.kernels):
            path = folder / f"{position:03d}_{kernel.name}.py"
            path.write_text(f"{kernel.text}\n\n{tail}")
            if expected:
                _save_expected(kernel, path.with_suffix(".npz"))
            paths.append(path)
        described = {
            "target": self.target,
            "kernels": [
                {"file": p.name, "axes": k.axes, "source": k.source, "uses": k.uses, "bytes": k.core.bytes}
                | ({"when": k.when} if k.when else {})
                for p, k in zip(paths, self.kernels, strict=True)
            ],
            "externs": [dataclasses.asdict(e) for e in self.externs],
            "routes": [dataclasses.asdict(r) for r in self.routes],
        }
        (folder / "plan.json").write_text(json.dumps(described, indent=1) + "\n")
        return paths


def compile_for(
    model: torch.nn.Module | Callable[..., Any],
    inputs: Sequence[Any] | Mapping[str, Any],
    *,
    target: str,
    training: bool = False,
    dynamic: bool = False,
    softmax_width: int | None = None,
) -> Plan:
    """Compiles `model` for a target without the device.

    Args:
        model: on the CPU or on meta, where tracing computes nothing.
        inputs: its arguments, or its keyword arguments, on the same device.
        target: "npu:910B3", "npu:910_9382", "npu:950" or "cuda".
        training: the backward pass too, of the sum of all results that require gradients, or of `.loss`.
        dynamic: sizes as torch.compile(dynamic=True) has them.
        softmax_width: on Ascend the softmax and log-softmax of longer rows is a library call; 0: never.
            Default: 256 (docs/routing.md).

    Raises:
        UserError: unknown target; a tensor on another device; a negative softmax_width; a backward pass that
            torch does not trace on meta.
    """
    return compile_graphs(trace(model, inputs, training, dynamic), target, softmax_width)


def compile_graphs(
    graphs: Sequence[tuple[str, fx.GraphModule]], target: str, softmax_width: int | None = None
) -> Plan:
    """compile_for on what `trace` returned, which stays as it is."""
    kernels: dict[tuple[str, str], Kernel] = {}
    externs: list[Extern] = []
    routes: list[Route] = []
    moved, seconds, known = 0, 0.0, _core.KnownTilings()
    for name, gm in graphs:
        plans, spent = _compile_by_width(gm, name, target, known, softmax_width)
        seconds += spent
        texts = [{_function(k.text) for k in plan.kernels} for _, plan in plans]
        calls = [Counter(map(_identity, plan.externs)) for _, plan in plans]
        always = functools.reduce(Counter.__and__, calls)
        for position, (when, compiled) in enumerate(plans):
            shared = always.copy()
            for e in compiled.externs:
                in_all = shared[_identity(e)] > 0
                shared[_identity(e)] -= 1
                if position and in_all:
                    continue
                extern = Extern(e.op, e.reason, _line(e.source), name, e.bytes, e.is_library)
                externs.append(extern if in_all else dataclasses.replace(extern, when=when))
            routes += [
                Route(r.op, r.choice, r.reason, _line(r.source), name, r.condition)
                for r in compiled.routes
                if r.condition or not position
            ]
            for kernel in compiled.kernels:
                function = _function(kernel.text)
                in_all = all(function in others for others in texts)
                if position and in_all:
                    continue
                moved += kernel.bytes if not position else 0
                key = (function, "" if in_all else when)
                if key in kernels:
                    kernels[key] = dataclasses.replace(kernels[key], uses=kernels[key].uses + 1)
                else:
                    kernels[key] = _kernel(kernel, name, key[1])
    return Plan(target, tuple(kernels.values()), tuple(externs), moved, seconds, tuple(routes))


def _identity(extern: _core.ExternRecord) -> tuple[str, str, str, int]:
    return extern.op, extern.reason, extern.source, extern.bytes


def _function(text: str) -> str:
    """What tells kernels apart: the file from its function on."""
    return text[text.index("@triton.jit") :]


def _kernel(kernel: _core.TileKernel, graph: str, when: str) -> Kernel:
    axes = tuple(int(a.extent) if a.extent.isdigit() else a.extent for a in kernel.axes)
    source = tuple(dict.fromkeys(filter(None, map(_line, kernel.sources))))
    return Kernel(kernel.name, axes, tuple(kernel.accesses), kernel.text, source, graph, 1, kernel, when)


def trace(model: Any, inputs: Any, training: bool, dynamic: bool) -> list[tuple[str, fx.GraphModule]]:
    """The graphs of a run of the model, and of its backward pass."""
    graphs: list[tuple[str, fx.GraphModule]] = []
    options = dataclasses.replace(resolve(None, None), fallback_random=True)
    count = 0

    def capture(kind: str, number: int) -> Callable[..., Any]:
        def compiler(gm: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
            correct_side_dtypes(gm)
            graphs.append((f"{number} {kind}", gm))
            return make_boxed_func(gm.forward)

        return compiler

    def backend(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        nonlocal count
        number, count = count, count + 1
        with whole_operators():
            return aot_autograd(
                fw_compiler=capture("forward", number),
                bw_compiler=capture("backward", number),
                inference_compiler=capture("inference", number),
                decompositions=decompositions(),
                partition_fn=functools.partial(partition, options, f"graph {number}"),
                keep_inference_input_mutations=True,
            )(gm, example_inputs)

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, dynamic=dynamic)
    with torch.set_grad_enabled(training):
        result = compiled(**inputs) if isinstance(inputs, Mapping) else compiled(*inputs)
        if training:
            loss = getattr(result, "loss", None)
            leaves = [loss] if loss is not None else pytree.tree_leaves(result)
            sum(t.sum() for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad).backward()
            if any(name.endswith("backward") and _returns_nothing(gm) for name, gm in graphs):
                raise UserError(
                    "the backward pass computes nothing: torch has no gradient of some operators (nll_loss) "
                    "on meta; put the model and the inputs on the CPU"
                )
    return graphs


def _returns_nothing(gm: fx.GraphModule) -> bool:
    (output,) = gm.graph.find_nodes(op="output")
    return not output.all_input_nodes


def _compile_by_width(
    gm: fx.GraphModule, name: str, target: str, known: _core.KnownTilings, softmax_width: int | None
) -> tuple[list[tuple[str, _core.TileCompilation]], float]:
    """(When it is to run, the graph compiled): two, where rules wait for a width; both are right. Seconds."""
    narrow, seconds = _compile(gm, name, target, known, softmax_width, False)
    if not (conditions := dict.fromkeys(r.condition for r in narrow.routes if r.condition)):
        return [("", narrow)], seconds
    wide, more = _compile(gm, name, target, known, softmax_width, True)
    others = dict.fromkeys(r.condition for r in wide.routes if r.condition)
    return [(" and ".join(conditions), narrow), (" or ".join(others), wide)], seconds + more


def _compile(
    gm: fx.GraphModule,
    name: str,
    target: str,
    known: _core.KnownTilings,
    softmax_width: int | None,
    wide: bool,
) -> tuple[_core.TileCompilation, float]:
    """Compiles until the target has code for every kernel: what it refuses becomes library calls.

    The seconds are the processor's in the core.
    """
    seconds = 0.0
    refused: dict[str, str] = {}
    for _ in range(_MOST_ROUNDS):
        imported = import_graph(gm, fallback_random=True, refused=refused, devices=("cpu", "meta"))
        begin = time.process_time()
        compiled = _core.compile_tiles(imported.builder, target, known, softmax_width, wide)
        seconds += time.process_time() - begin
        fresh = {
            _node(source): f"{target}: {kernel.reason}"
            for kernel in compiled.refused
            for source in kernel.sources
            if _node(source) not in refused
        }
        if not compiled.refused:
            return compiled, seconds
        if not fresh:
            reasons = "; ".join(f"{k.kernel} ({k.sources}): {k.reason}" for k in compiled.refused)
            raise InternalError(f"graph {name} has kernels without code for {target}: {reasons}")
        refused.update(fresh)
    raise InternalError(f"graph {name} for {target}: still refused after {_MOST_ROUNDS} rounds")


def _node(source: str) -> str:
    return source.partition(": ")[0]


def _line(source: str) -> str:
    return source.partition(": ")[2]


def _save_expected(kernel: Kernel, path: Path) -> None:
    """Per output, the positions that the kernel writes at cut extents, and the interpreter's values there.

    And bounds of floats: how far another order of summation and other rounding may lead.
    """
    import numpy

    from kerf.offline import kernel_main  # needs numpy, which torch may lack

    info = description(kernel.text)
    runs = []
    for fill in (0x5A, 0xA5):
        buffers = [kernel_main.make_buffer(i, b, fill) for i, b in enumerate(info["buffers"])]
        inputs = [b.clone() for b in buffers]
        bounds = [torch.zeros(b.numel(), dtype=torch.float64) for b in buffers]
        for part in kernel.core.parts:
            _core.run_reference(
                part.loop_text,
                [axis.cut for axis in part.axes],
                list(info["sizes"].values()),
                [b.data_ptr() for b in buffers],
                [b.data_ptr() for b in bounds],
            )
        runs.append((buffers, inputs))
    arrays = {}
    for i, buffer in enumerate(info["buffers"]):
        if buffer["mode"] == "in":
            continue
        (first, before), (second, _) = ((run[0][i], run[1][i]) for run in runs)
        width = first.element_size()
        bits = [t.view(torch.uint8).view(-1, width) for t in (first, second, before)]
        written = (bits[0] == bits[1]).all(1) if buffer["mode"] == "out" else (bits[0] != bits[2]).any(1)
        at = written.nonzero().flatten()
        value = first[at]
        arrays[buffer["name"] + "_at"] = at.numpy()
        arrays[buffer["name"]] = (value.double() if value.is_floating_point() else value).numpy()
        if value.is_floating_point():
            arrays[buffer["name"] + "_bound"] = bounds[i][at].numpy()
    numpy.savez_compressed(path, **arrays)


def description(text: str) -> dict[str, Any]:
    """KERNEL of a kernel file's text."""
    found = re.search(r"^KERNEL = (\{.*?^\})", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "the text of a kernel has KERNEL"
    return json.loads(found[1])
