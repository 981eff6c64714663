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

from kerf import _core, debug, eager_random, saved, trace_cache
from kerf.decomp import decompositions
from kerf.errors import UserError
from kerf.fx_import import CannotImport, import_graph
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

    core_options = _core_options(chosen)
    partition_fn = functools.partial(partition, chosen.partition, f"graph {graph}")
    if chosen.fallback_random:
        partition_fn = functools.partial(eager_random.partition_draws, partition_fn)

    def load(recipe: trace_cache.Recipe) -> Callable[..., Any] | None:
        return _load_traced(recipe, f"graph {graph} {recipe.kind}", core_options)

    with (
        eager_random.keep_draws(chosen.fallback_random),
        trace_cache.session(gm, chosen, core_options, load) as as_torch_wants,
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
            gm, any_strides=any_strides, strides=strides, fallback_random=options.fallback_random
        )
    except CannotImport as reason:
        return _run_by_torch(gm, name, kind, str(reason))
    import_seconds = time.perf_counter() - start
    compiled = _core.compile(
        imported.builder,
        _core_options(options),
        name,
        imported.arguments,
        imported.constants,
        imported.results,
        imported.functions,
    )
    compiled._boxed_call = True
    if kind == "forward":
        saved.report_strides(gm, compiled)
    if compiled.key and not imported.functions:  # an entry on disk cannot hold Python functions
        kinds = [argument.name for argument in imported.arguments]
        compiled.recipe = trace_cache.Recipe(kind, compiled.key, kinds, imported.constants, imported.results)
    _record(compiled, kind, {"import": import_seconds}, imported.functions)
    return compiled


def _load_traced(
    recipe: trace_cache.Recipe, name: str, options: _core.CompileOptions
) -> Callable[..., Any] | None:
    """What an earlier process compiled, or None."""
    kinds = [_core.ArgumentKind[argument] for argument in recipe.arguments]
    compiled, warnings = _core.load(recipe.key, options, name, kinds, recipe.constants, recipe.results)
    if compiled is None:
        _log_warnings(warnings)
    else:
        compiled._boxed_call = True
        _record(compiled, recipe.kind, {}, [])
    return compiled


def _record(compiled: Any, kind: str, seconds: dict[str, float], functions: list[Any]) -> None:
    report = compiled.report
    _log_warnings(report.warnings)
    externs = tuple(debug.Extern(_operator_name(e.op, functions), e.reason, e.source) for e in report.externs)
    seconds = seconds | {stage: s for stage, s in report.seconds if stage != "total"}
    debug.record(
        debug.Compilation(
            compiled.name,
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
    core_options.keep_text = options.keep_text
    core_options.dump_dir = options.dump or ""
    uses_cache = options.cache and not torch.compiler.config.force_disable_caches
    core_options.cache_dir = _core.cache_directory() if uses_cache else ""
    return core_options


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
