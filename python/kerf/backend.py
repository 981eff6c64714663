"""The backend of torch.compile: AOTAutograd traces, Kerf compiles what it traced.

A compiled graph follows the boxed convention: it takes one list of arguments and empties it, so that tensors
are freed as soon as nobody else holds them.
"""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from kerf import _core, debug
from kerf.decomp import decompositions, whole_operators
from kerf.errors import UserError
from kerf.fx_import import CannotImport, ImportedGraph, import_graph
from kerf.options import Options, resolve
from kerf.partition import correct_side_dtypes, partition

SUPPORTED_TORCH = ((2, 11), (2, 14))


def kerf_backend(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo, forward and backward; torch.compile(model, backend="kerf") calls it.

    Args:
        gm: the graph.
        example_inputs: its inputs as tracing has them (fake tensors, SymInts).
        mode: one of options.MODES.
        options: see options.Options.

    Raises:
        UserError: unknown option or mode, another torch than SUPPORTED_TORCH, tensors that are not on the
            CPU. Dynamo wraps it in BackendCompilerFailed.
    """
    check_torch_version(torch.__version__)
    chosen = resolve(options, mode)
    _check_devices(example_inputs)
    graph = debug.next_graph()

    def compiler(kind: str) -> Callable[..., Any]:
        return functools.partial(_compile_traced, name=f"graph {graph} {kind}", kind=kind, options=chosen)

    with whole_operators():
        return aot_autograd(
            fw_compiler=compiler("forward"),
            bw_compiler=compiler("backward"),
            inference_compiler=compiler("inference"),
            decompositions=decompositions(),
            partition_fn=functools.partial(partition, chosen.partition),
            keep_inference_input_mutations=True,
        )(gm, example_inputs)


def compile_graph(
    gm: fx.GraphModule, *, options: Options | None = None, name: str = "graph"
) -> Callable[..., Any]:
    """Compiles a functional ATen graph whose nodes carry fake values; returns a boxed callable."""
    return _compile_traced(gm, (), name=name, kind="inference", options=options or resolve(None, None))


def check_torch_version(version: str) -> None:
    """Raises UserError for a torch that Kerf was not made for."""
    major, minor = (int("".join(filter(str.isdigit, part))) for part in version.split(".")[:2])
    low, high = SUPPORTED_TORCH
    if not low <= (major, minor) <= high:
        wanted = f"{low[0]}.{low[1]} to {high[0]}.{high[1]}"
        raise UserError(f"Kerf supports torch {wanted}; this is torch {version}")


def _check_devices(inputs: Sequence[Any]) -> None:
    for position, value in enumerate(inputs):
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            raise UserError(f"Kerf compiles for the CPU only; input {position} is on {value.device}")


def _compile_traced(
    gm: fx.GraphModule, _example_inputs: Sequence[Any], *, name: str, kind: str, options: Options
) -> Callable[..., Any]:
    start = time.perf_counter()
    correct_side_dtypes(gm)
    try:
        imported = import_graph(gm)
    except CannotImport as reason:
        return _run_by_torch(gm, name, kind, str(reason))
    import_seconds = time.perf_counter() - start
    compiled = _compile_imported(imported, name, options)
    report = compiled.report
    externs = tuple(debug.Extern(_operator_name(e.op, imported), e.reason, e.source) for e in report.externs)
    seconds = {"import": import_seconds} | {stage: s for stage, s in report.seconds if stage != "total"}
    debug.record(
        debug.Compilation(
            name,
            kind,
            report.nodes,
            report.kernels,
            report.unique_kernels,
            externs,
            seconds,
            report.cache_hit,
            report,
        )
    )
    return compiled


def _operator_name(op: str, imported: ImportedGraph) -> str:
    """What the step calls, where it is a Python function."""
    if not op.startswith("python:"):
        return op
    return str(imported.functions[int(op.removeprefix("python:"))].target)


def _compile_imported(imported: ImportedGraph, name: str, options: Options) -> _core.CompiledGraph:
    core_options = _core.CompileOptions()
    core_options.fallback_random = options.fallback_random
    core_options.use_cache = (
        options.cache and not imported.functions
    )  # a plan on disk cannot hold Python functions
    core_options.opt_level = options.opt_level
    core_options.keep_text = options.keep_text
    core_options.dump_dir = options.dump or ""
    compiled = _core.compile(
        imported.builder,
        core_options,
        name,
        imported.arguments,
        imported.constants,
        imported.results,
        imported.functions,
    )
    compiled._boxed_call = True
    return compiled


def _run_by_torch(gm: fx.GraphModule, name: str, kind: str, reason: str) -> Callable[..., Any]:
    """The whole graph as one step that is not compiled."""
    nodes = sum(node.op == "call_function" for node in gm.graph.nodes)
    externs = (debug.Extern("graph", f"runs as torch runs it: {reason}", ""),)
    debug.record(debug.Compilation(name, kind, nodes, 0, 0, externs, {}, False, None))
    debug.log.warning("%s is not compiled: %s", name, reason)

    def run(arguments: list[Any]) -> Any:
        taken = tuple(arguments)
        arguments.clear()
        with torch.no_grad():
            return gm(*taken)

    run._boxed_call = True
    return run
