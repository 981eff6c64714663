"""The backend of torch.compile: AOTAutograd traces, Kerf compiles what it traced.

A compiled graph follows the boxed convention: it takes one list of arguments and empties it, so that tensors
are freed as soon as nobody else holds them.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch.utils import _pytree as pytree

from kerf import _core, debug, eager_random, saved, trace_cache
from kerf.decomp import decompositions, whole_operators
from kerf.errors import InternalError, RuntimeError, UserError
from kerf.fx_import import CannotImport, ImportedGraph, import_graph
from kerf.options import Options, resolve
from kerf.partition import correct_side_dtypes, partition
from kerf.sizes import hint_of

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
    if _core.code_generator() == "interpreter":
        debug.warn_once("this build of Kerf has no LLVM: kernels are interpreted, which is right and slow")
    chosen = resolve(options, mode)
    _check_devices(example_inputs)
    graph = debug.next_graph()

    def compiler(kind: str) -> Callable[..., Any]:
        return functools.partial(_compile_traced, name=f"graph {graph} {kind}", kind=kind, options=chosen)

    partition_fn = functools.partial(partition, chosen, f"graph {graph}")
    if chosen.fallback_random:
        partition_fn = functools.partial(eager_random.partition_draws, partition_fn)

    def load(recipe: trace_cache.Recipe) -> Callable[..., Any] | None:
        return _load_traced(recipe, f"graph {graph} {recipe.kind}", chosen)

    with (
        whole_operators(),
        eager_random.keep_draws(chosen.fallback_random),
        trace_cache.session(gm, chosen, _core_options(chosen), load) as as_torch_wants,
    ):
        return aot_autograd(
            fw_compiler=as_torch_wants(compiler("forward")),
            bw_compiler=as_torch_wants(compiler("backward")),
            inference_compiler=as_torch_wants(compiler("inference")),
            decompositions=decompositions(),
            partition_fn=partition_fn,
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
    gm: fx.GraphModule, example_inputs: Sequence[Any], *, name: str, kind: str, options: Options
) -> Callable[..., Any]:
    start = time.perf_counter()
    correct_side_dtypes(gm)
    if options.fallback_random:
        eager_random.scale_as_eager(gm)
    any_strides = saved.positions(gm) if kind == "forward" else frozenset()
    strides = saved.chosen_strides(gm, example_inputs) if kind == "backward" else {}
    try:
        imported = import_graph(
            gm,
            any_strides=any_strides,
            strides=strides,
            fallback_random=options.fallback_random,
            dump=options.dump,
        )
    except CannotImport as reason:
        return _run_by_torch(gm, name, kind, str(reason))
    import_seconds = time.perf_counter() - start
    compiled = _compile_imported(imported, name, kind, options)
    if kind == "forward":
        saved.report_strides(gm, compiled)
    if compiled.key and not imported.functions:  # an entry on disk cannot hold Python functions
        kinds = [argument.name for argument in imported.arguments]
        compiled.recipe = trace_cache.Recipe(kind, compiled.key, kinds, imported.constants, imported.results)
    _record(compiled, kind, import_seconds, imported.functions, options)
    return compiled


def _load_traced(recipe: trace_cache.Recipe, name: str, options: Options) -> Callable[..., Any] | None:
    """What an earlier process compiled, or None."""
    kinds = [_core.ArgumentKind[argument] for argument in recipe.arguments]
    compiled, warnings = _core.load(
        recipe.key, _core_options(options), name, kinds, recipe.constants, recipe.results
    )
    if compiled is None:
        _log_warnings(warnings)
    else:
        compiled._boxed_call = True
        _record(compiled, recipe.kind, 0.0, [], options)
    return compiled


def _record(
    compiled: _core.CompiledGraph, kind: str, import_seconds: float, functions: list[Any], options: Options
) -> None:
    report = compiled.report
    _log_warnings(report.warnings)
    if report.dump_problem:
        debug.warn_once(f"stages are not dumped: {report.dump_problem}")
    kernels = tuple(
        debug.Kernel(k.name, tuple(k.sources), tuple(k.members), k.bytes_read, k.bytes_written)
        for k in report.kernel_records
    )
    externs = tuple(
        debug.Extern(_operator_name(e.op, functions), e.reason, e.source, e.bytes, e.is_library)
        for e in report.externs
    )
    debug.record(
        debug.Compilation(
            name=compiled.name,
            kind=kind,
            target=report.target,
            nodes=report.nodes,
            kernels=report.kernels,
            unique_kernels=report.unique_kernels,
            kernel_records=kernels,
            externs=externs,
            seconds=debug.phase_seconds(import_seconds, dict(report.seconds)),
            bytes=debug.moved_bytes(kernels, externs),
            peak_bytes=report.peak_bytes,
            cache_hit=report.cache_hit,
            graph_text=report.graph_text,
            opt_level=options.opt_level,
            routes=tuple((r.op, r.choice, r.reason, r.source) for r in report.routes),
        ),
        compiled,
    )


def _log_warnings(warnings: list[str]) -> None:
    for warning in warnings:
        debug.log.warning("%s", warning)


def _operator_name(op: str, functions: list[Any]) -> str:
    """What the step calls, where it is a Python function."""
    if not op.startswith("python:"):
        return op
    return str(functions[int(op.removeprefix("python:"))].target)


def _core_options(options: Options) -> _core.CompileOptions:
    core_options = _core.CompileOptions()
    core_options.opt_level = options.opt_level
    uses_cache = options.cache and not torch.compiler.config.force_disable_caches
    core_options.cache_dir = _core.cache_directory() if uses_cache else ""
    return core_options


def _compile_imported(imported: ImportedGraph, name: str, kind: str, options: Options) -> _core.CompiledGraph:
    core_options = _core_options(options)
    core_options.dump_dir = debug.dump_folder(options.dump, kind) if options.dump else ""
    try:
        compiled = _core.compile(
            imported.builder,
            core_options,
            name,
            imported.arguments,
            imported.constants,
            imported.results,
            imported.functions,
        )
    except (InternalError, RuntimeError) as error:
        passes = "compile" if options.opt_level else "compile_o0"
        raise debug.with_replay(error, passes, imported.builder.text(), core_options.dump_dir) from error
    compiled._boxed_call = True
    return compiled


def _run_by_torch(gm: fx.GraphModule, name: str, kind: str, reason: str) -> Callable[..., Any]:
    """The whole graph as one step that is not compiled."""
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    whole = debug.Extern("graph", f"runs as torch runs it: {reason}", "")
    # Its record counts bytes by operator, as those of compiled graphs do.
    moved = [debug.Extern(str(n.target), "", "", *_bytes_of(n)) for n in calls]
    debug.record(
        debug.Compilation(
            name=name,
            kind=kind,
            target="torch",
            nodes=len(calls),
            kernels=0,
            unique_kernels=0,
            kernel_records=(),
            externs=(dataclasses.replace(whole, bytes=sum(e.bytes for e in moved)),),
            seconds=debug.phase_seconds(0.0, {}),
            bytes=debug.moved_bytes((), tuple(moved)),
            peak_bytes=0,
            cache_hit=False,
            graph_text=str(gm.graph),
        )
    )
    debug.log.warning("%s is not compiled: %s", name, reason)

    def run(arguments: list[Any]) -> Any:
        taken = tuple(arguments)
        arguments.clear()
        with torch.no_grad():
            return gm(*taken)

    run._boxed_call = True
    return run


def _bytes_of(node: fx.Node) -> tuple[int, bool]:
    """Extern.bytes and .is_library of a node that torch runs; a size that nobody knows counts nothing."""
    nodes = [n for n in pytree.tree_leaves((node, node.args, node.kwargs)) if isinstance(n, fx.Node)]
    values = [n.meta.get("val") for n in nodes]
    tensors = [t for value in values for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]
    counts = [(hint_of(tensor.numel()) or 0) * tensor.element_size() for tensor in tensors]
    return sum(counts), _core.is_library_call(str(node.target))
