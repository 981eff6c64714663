"""Kernel texts for targets that compute in tiles (Ascend NPUs, NVIDIA GPUs), made without the device.

A model is traced as torch.compile traces it; every graph, forward and backward, becomes kernels of Triton
text and library calls. Nothing is built or run.
"""

import dataclasses
import functools
import json
import re
import time
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
from kerf.errors import InternalError
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
    """

    name: str
    axes: tuple[int | str, ...]
    accesses: tuple[Any, ...]
    text: str
    source: tuple[str, ...]
    graph: str
    uses: int
    core: Any = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Extern:
    """A library call: its operator, why it is no kernel, the user's line, the bytes it moves."""

    op: str
    reason: str
    source: str
    graph: str
    bytes: int
    is_library: bool


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a model becomes on a target.

    Attributes:
        target: its name.
        kernels: each different one once.
        externs: every library call.
        kernel_bytes: that all launches move.
        seconds: of the processor in C++, all rounds of all graphs.
    """

    target: str
    kernels: tuple[Kernel, ...]
    externs: tuple[Extern, ...]
    kernel_bytes: int
    seconds: float

    @property
    def share(self) -> float:
        """Bytes moved by kernels, of all that are not matrix products, convolutions or attention."""
        others = sum(e.bytes for e in self.externs if not e.is_library)
        total = self.kernel_bytes + others
        return self.kernel_bytes / total if total else 1.0

    def report(self) -> str:
        """The kernels with their axes, and the library calls with their reasons."""
        lines = [f"{len(self.kernels)} kernels for {self.target}, {self.share:.1%} of the bytes"]
        lines += [f"  {k.graph}  {k.name}  {list(k.axes)}" for k in self.kernels]
        lines += [f"  {e.graph}  {e.op}: {e.reason}  {e.source}" for e in self.externs]
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
                for p, k in zip(paths, self.kernels, strict=True)
            ],
            "externs": [dataclasses.asdict(e) for e in self.externs],
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
) -> Plan:
    """Compiles `model` for a target without the device.

    Args:
        model: on the CPU or on meta, where tracing computes nothing.
        inputs: its arguments, or its keyword arguments, on the same device.
        target: "npu:910B3", "npu:910_9382", "npu:950" or "cuda".
        training: the backward pass too, of the sum of all results that require gradients, or of `.loss`.
        dynamic: sizes as torch.compile(dynamic=True) has them.

    Raises:
        UserError: unknown target; a tensor on another device.
    """
    return compile_graphs(trace(model, inputs, training, dynamic), target)


def compile_graphs(graphs: Sequence[tuple[str, fx.GraphModule]], target: str) -> Plan:
    """compile_for on what `trace` returned, which stays as it is."""
    kernels: dict[str, Kernel] = {}
    externs: list[Extern] = []
    moved, seconds = 0, 0.0
    for name, gm in graphs:
        compiled, spent = _compile(gm, name, target)
        seconds += spent
        externs += [
            Extern(e.op, e.reason, _line(e.source), name, e.bytes, e.is_library) for e in compiled.externs
        ]
        for kernel in compiled.kernels:
            moved += kernel.bytes
            key = kernel.text[kernel.text.index("@triton.jit") :]
            if key in kernels:
                kernels[key] = dataclasses.replace(kernels[key], uses=kernels[key].uses + 1)
                continue
            axes = tuple(int(a.extent) if a.extent.isdigit() else a.extent for a in kernel.axes)
            source = tuple(dict.fromkeys(filter(None, map(_line, kernel.sources))))
            kernels[key] = Kernel(
                kernel.name, axes, tuple(kernel.accesses), kernel.text, source, name, 1, kernel
            )
    return Plan(target, tuple(kernels.values()), tuple(externs), moved, seconds)


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
    return graphs


def _compile(gm: fx.GraphModule, name: str, target: str) -> tuple[_core.TileCompilation, float]:
    """Compiles until the target has code for every kernel: what it refuses becomes library calls.

    The seconds are the processor's in the core.
    """
    seconds = 0.0
    refused: dict[str, str] = {}
    for _ in range(_MOST_ROUNDS):
        imported = import_graph(gm, fallback_random=True, refused=refused, devices=("cpu", "meta"))
        begin = time.process_time()
        compiled = _core.compile_tiles(imported.builder, target)
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
    """Per output, the positions that the kernel writes at cut extents and the interpreter's values there."""
    import numpy

    from kerf.offline import kernel_main  # needs numpy, which torch may lack

    info = description(kernel.text)
    runs = []
    for fill in (0x5A, 0xA5):
        buffers = [kernel_main.make_buffer(i, b, fill) for i, b in enumerate(info["buffers"])]
        inputs = [b.clone() for b in buffers]
        for part in kernel.core.parts:
            _core.run_reference(
                part.loop_text,
                [axis.cut for axis in part.axes],
                list(info["sizes"].values()),
                [b.data_ptr() for b in buffers],
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
    numpy.savez_compressed(path, **arrays)


def description(text: str) -> dict[str, Any]:
    """KERNEL of a kernel file's text."""
    found = re.search(r"^KERNEL = (\{.*?^\})", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "the text of a kernel has KERNEL"
    return json.loads(found[1])
