"""A warm start without tracing: AOTAutograd's own cache of traces, kept in Kerf's disk cache.

torch restores what AOTAutograd made of a graph (wrappers, metadata, guards on sizes) around compiled code
that can be pickled, here a TracedCode: it names a Plan of the disk cache.

Three functions of torch's cache are led here while a Session is active in the thread, as torch offers no
other way: the two that read and write entries, as torch does not check what it reads back; and the one that
makes the key, as torch's imports all of TorchInductor (2 s) and leaves out what Kerf's results depend on.
Where this torch has no such cache, or refuses a graph, graphs are traced anew and only Plans are kept.
"""

import contextlib
import functools
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

from kerf import _core
from kerf.debug import log
from kerf.fx_import import Sources
from kerf.options import Options

try:
    from torch._functorch import config as aot_config
    from torch._functorch._aot_autograd import autograd_cache as torch_cache
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
    from torch._functorch.aot_autograd import SerializableAOTDispatchCompiler
    from torch._inductor import config as inductor_config
    from torch._inductor.codecache import FxGraphCache
    from torch._inductor.output_code import OutputCode

    _NEEDED = (
        AOTAutogradCache.iterate_over_candidates,
        AOTAutogradCache._write_to_local_cache,
        FxGraphCache._check_can_cache,
        torch_cache.AOTAutogradCachePickler,
        torch_cache.BypassAOTAutogradCache,
        torch_cache.FXGraphCacheMiss,
        torch_cache.autograd_cache_key,
        torch_cache.check_cacheable,
        torch_cache.sanitize_gm_for_cache,
        aot_config.bundled_autograd_cache,
        aot_config.force_non_lazy_backward_lowering,
        inductor_config.unsafe_marked_cacheable_functions,
    )
    MISSING = ""
except (ImportError, AttributeError) as error:
    OutputCode = object
    MISSING = f"torch {torch.__version__} does not let other compilers take part in its cache ({error})"

# Of one key: sizes under other guards. Newest first.
_MAX_VARIANTS = 8

# What a graph holds of an autocast inside it: arguments say all. torch 2.13 does not list these as safe.
_AUTOCAST = {
    "torch.amp.autocast_mode._enter_autocast": "kerf",
    "torch.amp.autocast_mode._exit_autocast": "kerf",
}

# Operators of torch itself: the same torch means the same.
_NAMESPACES = {"aten", "prims", "prim"}


@dataclass
class Recipe:
    """How a compiled graph is made again from a Plan of the disk cache.

    Attributes:
        kind: "forward", "backward" or "inference".
        key: the Plan.
        arguments: names of ArgumentKinds.
        constants: see fx_import.ImportedGraph.
        results: see fx_import.ImportedGraph.
    """

    kind: str
    key: str
    arguments: list[str]
    constants: list[torch.Tensor]
    results: list[tuple[bool, int, bool]]


class TracedCode(OutputCode):
    """A compiled graph as torch's cache wants it."""

    def __init__(self, compiled: Callable[..., Any], recipe: Recipe | None) -> None:
        """`recipe` None: the graph cannot be kept."""
        self.compiled: Callable[..., Any] | None = compiled
        self.recipe = recipe
        self._boxed_call = True  # in the object, not the class: torch's wrappers copy that

    def __call__(self, inputs: list[Any]) -> Any:
        return self.compiled(inputs)

    def prepare_for_serialization(self) -> None:
        if self.recipe is None:
            raise torch_cache.BypassAOTAutogradCache("a step of the graph cannot be kept on disk")
        self.compiled = None

    def post_compile(self, _example_inputs: Any, _constants: Any, _graph_kwargs: Any) -> None:
        """Called when the entry was found."""
        self.compiled = _active.session.load(self.recipe)


class Session:
    """Compiling one graph of Dynamo with the cache."""

    def __init__(
        self, options: Options, core_options: _core.CompileOptions, load: Callable[[Recipe], Any]
    ) -> None:
        """`load`: what the recipe names, or None if it is gone."""
        self._options = options
        self._core_options = core_options
        self._store = _core.DiskCache(core_options.cache_dir, log.warning)
        self._load = load
        self.was_asked = False

    def load(self, recipe: Recipe) -> Any:
        compiled = self._load(recipe)
        if compiled is None:
            raise torch_cache.FXGraphCacheMiss(f"no Plan {recipe.key}")
        return compiled

    def key(self, mod: Any, inputs: Sequence[Any], config: Any, *rest: Any) -> tuple[str, list[str]]:
        """What torch's autograd_cache_key gives; raises what torch's does for what must not be cached."""
        gm = getattr(mod, "gm", mod)
        tag = _tag(gm, inputs, self._options, self._core_options)
        with torch_cache.sanitize_gm_for_cache(gm):
            for module in gm.modules():
                if isinstance(module, fx.GraphModule):
                    torch_cache.check_cacheable(module)
            FxGraphCache._check_can_cache(gm)
            if any(isinstance(node.meta.get("example_value"), torch.SymFloat) for node in gm.graph.nodes):
                # Tracing may fix such a number; torch's guards of an entry are about sizes only.
                raise torch_cache.BypassAOTAutogradCache("a Python float that changes from call to call")
            content = (gm, list(inputs), config, rest, aot_config.save_config(), tag)
            return _core.content_hash(torch_cache.AOTAutogradCachePickler(gm).dumps(content)), []

    def candidates(self, key: str) -> Iterator[tuple[Any, bytes, bool]]:
        """What torch's iterate_over_candidates gives: (entry, its bytes, is local)."""
        self.was_asked = True
        for content in self._store.load(_name(key)) or ():
            try:
                entry = pickle.loads(content)
            except Exception as error:  # whatever the classes in it raise
                self._store.discard(_name(key), f"unusable ({error!r})")
                return
            yield entry, content, True

    def write(self, key: str, content: bytes) -> None:
        older = self._store.load(_name(key)) or []
        self._store.store(_name(key), [content, *older][:_MAX_VARIANTS])


class _Active(threading.local):
    session: Session | None = None


_active = _Active()


@contextlib.contextmanager
def session(
    gm: fx.GraphModule,
    options: Options,
    core_options: _core.CompileOptions,
    load: Callable[[Recipe], Any],
) -> Iterator[Callable[..., Any]]:
    """Within it AOTAutograd loads and stores; gives the function that makes its compilers of Kerf's."""
    reason = MISSING or _obstacle(gm) if core_options.cache_dir and not options.dump else "off"
    if reason:
        log.debug("traces are not cached: %s", reason)
        yield lambda compiler: compiler
        return
    _install()
    current = Session(options, core_options, load)
    outer, _active.session = _active.session, current
    try:
        # Bundled: entries hold TracedCodes. Not lazy: torch writes the entry when the backward is compiled,
        # which must be within this session.
        settings = {"bundled_autograd_cache": True, "force_non_lazy_backward_lowering": True}
        safe = inductor_config.unsafe_marked_cacheable_functions | _AUTOCAST
        with aot_config.patch(settings), inductor_config.patch(unsafe_marked_cacheable_functions=safe):
            yield _serializable
    finally:
        _active.session = outer
    if not current.was_asked:
        log.info('torch refused to cache a trace; TORCH_LOGS="+torch._functorch" says why')


def _serializable(compiler: Callable[..., Any]) -> Any:
    def compile_traced(gm: fx.GraphModule, inputs: Sequence[Any]) -> TracedCode:
        compiled = compiler(gm, inputs)
        return TracedCode(compiled, getattr(compiled, "recipe", None))

    return SerializableAOTDispatchCompiler(TracedCode, compile_traced)


@functools.cache
def _install() -> None:
    """Leads torch's cache to the session of the thread, where there is one."""
    torch_key = torch_cache.autograd_cache_key
    torch_candidates = AOTAutogradCache.iterate_over_candidates.__func__
    torch_write = AOTAutogradCache._write_to_local_cache

    def autograd_cache_key(*args: Any, **kwargs: Any) -> Any:
        return (_active.session.key if _active.session else torch_key)(*args, **kwargs)

    def iterate_over_candidates(cls: Any, local: bool, remote_cache: Any, key: str) -> Iterator[Any]:
        if _active.session is None:
            return torch_candidates(cls, local, remote_cache, key)
        return _active.session.candidates(key)

    def write_to_local_cache(key: str, content: bytes) -> None:
        if _active.session is None:
            torch_write(key, content)
        else:
            _active.session.write(key, content)

    torch_cache.autograd_cache_key = autograd_cache_key
    AOTAutogradCache.iterate_over_candidates = classmethod(iterate_over_candidates)
    AOTAutogradCache._write_to_local_cache = staticmethod(write_to_local_cache)


def _name(key: str) -> str:
    return f"trace-{key}"


# What may be cached, and under which key


def _obstacle(gm: fx.GraphModule) -> str:
    """Why the key cannot tell all about this graph; empty if it can."""
    for name in ("activation_memory_budget_runtime_estimator", "activation_memory_budget_solver"):
        if callable(getattr(aot_config, name, None)):
            return f"{name} is a function"
    for module in gm.modules():
        if any(isinstance(value, torch.Tensor) for value in vars(module).values()):
            return "a tensor is an attribute of the graph"
        if not isinstance(module, fx.GraphModule):
            continue
        if module.meta.get("_checkpoint_context_fn"):
            return "a function chooses what is checkpointed"
        for reason in map(_obstacle_of, module.graph.nodes):
            if reason:
                return reason
    return ""


def _obstacle_of(node: fx.Node) -> str:
    if node.op == "call_module":
        return f"module {node.target} is called whole"
    if node.meta.get("is_wrapped") or _namespace(node.target) not in _NAMESPACES:
        return f"what {node.target} does may have changed: it is not torch's"
    return ""


def _namespace(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace
    if isinstance(target, torch._ops.OpOverloadPacket):
        return target._qualified_op_name.partition("::")[0]
    is_triton = isinstance(target, torch._ops.HigherOrderOperator) and "triton" in target.name()
    return "triton" if is_triton else "aten"


def _tag(
    gm: fx.GraphModule, inputs: Sequence[Any], options: Options, core_options: _core.CompileOptions
) -> str:
    """What results depend on besides the graph, the metadata of inputs and the settings of AOTAutograd."""
    sources = Sources()
    nodes = [
        node for module in gm.modules() if isinstance(module, fx.GraphModule) for node in module.graph.nodes
    ]
    parts = [
        _core.environment_key(core_options),
        _package_hash(),
        torch.__version__,
        torch.version.git_version,
        repr(options),
        [sources.of(node) for node in nodes],
        [repr(node.meta.get("custom")) for node in nodes],
        sorted(inductor_config.unsafe_marked_cacheable_functions.items()),
        _places(inputs),
        _modes(),
    ]
    return _core.content_hash(repr(parts).encode())


@functools.cache
def _package_hash() -> str:
    files = sorted(Path(__file__).parent.glob("*.py"))
    return _core.content_hash(b"".join(path.read_bytes() for path in files))


def _places(inputs: Sequence[Any]) -> list[Any]:
    """Which inputs share a storage, where they lie in it, which are views and which leaves."""
    storages: dict[Any, int] = {}
    places = []
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            number = storages.setdefault(value.untyped_storage()._cdata, len(storages))
            places.append((number, str(value.storage_offset()), value._is_view(), value.is_leaf))
        else:
            places.append(None)
    return places


def _modes() -> list[Any]:
    """State of torch that tracing looks at."""
    sdp = torch.backends.cuda
    return [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        sdp.flash_sdp_enabled(),
        sdp.mem_efficient_sdp_enabled(),
        sdp.math_sdp_enabled(),
        sdp.cudnn_sdp_enabled(),
    ]
