"""From an FX graph of AOTAutograd to a Kerf graph: one builder call per node, and no decision.

What a node means is decided in C++ (graph/import_aten.h). A node that is no operator of a library, or whose
arguments a plan cannot hold, becomes a step that calls a Python function. A graph that cannot be imported
raises CannotImport, with the reason.
"""

import dataclasses
import functools
import math
import operator
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import fx

from kerf import _core
from kerf.debug import with_replay
from kerf.eager_random import is_random
from kerf.errors import InternalError, KerfError, UserError
from kerf.extern import ComputedSlot, PythonCall, Slot
from kerf.floats import float_value
from kerf.sizes import NoIndexText, SizeTable, UnknownSize, is_size

_COPY = torch.ops.aten.copy_.default
_AS_STRIDED = torch.ops.aten.as_strided.default
_AS_STRIDED_SCATTER = torch.ops.aten.as_strided_scatter.default

_FILLS = {
    torch.ops.aten.full.default,
    torch.ops.aten.full_like.default,
    torch.ops.aten.new_full.default,
    torch.ops.aten.scalar_tensor.default,
}

# Statements about sizes that tracing has turned into guards.
_SIZE_STATEMENTS = {
    torch.ops.aten._assert_scalar.default,
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
}

# Steps without a result that raise where values are not as they must be.
_ASSERTIONS = {torch.ops.aten._assert_async.msg}


class CannotImport(KerfError):
    """The graph has something that no step of a plan can express; it runs as torch runs it."""


class _NotRepresentable(Exception):
    """An argument that a plan cannot hold."""


@dataclasses.dataclass
class ImportedGraph:
    """A built graph, and what a call of it needs besides.

    Attributes:
        builder: the graph.
        arguments: an ArgumentKind per placeholder.
        constants: tensors that the graph holds, passed as further arguments.
        results: (is an argument, position, is another object over that memory) per output of the FX graph.
        functions: callables of the steps named "python:<position>".
    """

    builder: _core.GraphBuilder
    arguments: list[Any]
    constants: list[torch.Tensor]
    results: list[tuple[bool, int, bool]]
    functions: list[Callable[..., Any]]


def import_graph(
    gm: fx.GraphModule,
    *,
    any_strides: Container[int] = (),
    strides: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
    fallback_random: bool = False,
    dump: str | None = None,
    refused: Mapping[str, str] | None = None,
    devices: tuple[str, ...] = ("cpu",),
) -> ImportedGraph:
    """Imports `gm`, whose nodes carry fake values in meta["val"].

    Args:
        gm: the graph.
        any_strides: positions of results whose strides need not be those that tracing saw.
        strides: those of arguments that come with others than tracing saw, by position.
        fallback_random: every random operator is called as the library has it.
        dump: folder to which a failure is written.
        refused: nodes by name that must be library calls, with the reason. Where given, sources begin with
            the node's name.
        devices: where tensors may be.

    Raises:
        UserError: a tensor is not on the CPU, or a view that overlaps itself is written to.
        CannotImport: see there.
    """
    return _Importer(gm, any_strides, strides, fallback_random, dump, refused, devices).run()


class _Importer:
    def __init__(
        self,
        gm: fx.GraphModule,
        any_strides: Container[int],
        strides: Mapping[int, tuple[int, ...]],
        fallback_random: bool,
        dump: str | None,
        refused: Mapping[str, str] | None,
        devices: tuple[str, ...],
    ) -> None:
        self.gm = gm
        self.any_strides = any_strides
        self.strides = strides
        self.fallback_random = fallback_random
        self.dump = dump
        self.refused = refused
        self.devices = devices
        self.builder = _core.GraphBuilder()
        self.sizes = SizeTable(self.builder)
        self.placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.env: dict[fx.Node, Any] = {}  # Value, number, None, module, or a tuple of these
        self.passed: dict[Any, int] = {}  # Values that are arguments as they came -> position
        self.constants: list[torch.Tensor] = []
        self.functions: list[Callable[..., Any]] = []
        self.arguments: list[Any] = []
        self.results: list[tuple[bool, int, bool]] = []
        self.sources = Sources()

    def run(self) -> ImportedGraph:
        try:
            for node in self.gm.graph.nodes:
                self.node(node)
        except (UnknownSize, NoIndexText) as error:
            raise CannotImport(str(error)) from error
        except InternalError as error:
            raise with_replay(error, "import_externals", self.builder.text(), self.dump) from error
        return ImportedGraph(self.builder, self.arguments, self.constants, self.results, self.functions)

    def node(self, node: fx.Node) -> None:
        match node.op:
            case "placeholder":
                if not self.arguments:
                    self.declare_sizes()
                self.env[node] = self.argument(node)
            case "get_attr":
                self.env[node] = self.attribute(node)
            case "call_function":
                self.env[node] = self.call(node)
            case "output":
                self.output(node)
            case _:
                raise CannotImport(f"a node of kind {node.op} ({node.target})")

    # Arguments and constants

    def declare_sizes(self) -> None:
        for position, node in enumerate(self.placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                for dim, size in enumerate(value.shape):
                    self.sizes.add_argument(size, position, dim)
            else:
                self.sizes.add_argument(value, position, -1)

    def argument(self, node: fx.Node) -> Any:
        position = len(self.arguments)
        value = node.meta.get("val")
        if _is_token(node):
            self.arguments.append(_core.ArgumentKind.ignored)
            return None
        if not isinstance(value, torch.Tensor):
            is_integer = is_size(value)
            self.arguments.append(_core.ArgumentKind.integer if is_integer else _core.ArgumentKind.ignored)
            return value
        self.arguments.append(_argument_kind(value, node))
        return self.input(value, position, node.meta.get("kerf_ends", False))

    def input(self, tensor: torch.Tensor, position: int, ends: bool = False) -> Any:
        value = self.builder.input(position, self.type_of(tensor), self.strides.get(position), ends)
        self.passed[value] = position
        return value

    def attribute(self, node: fx.Node) -> Any:
        value = operator.attrgetter(node.target)(self.gm)
        if not isinstance(value, torch.Tensor):
            return value
        self.constants.append(value)
        return self.input(value, len(self.placeholders) + len(self.constants) - 1)

    def type_of(self, tensor: torch.Tensor) -> tuple[str, tuple[Any, ...], tuple[Any, ...]]:
        if tensor.device.type not in self.devices:
            hint = "; kernels for Ascend NPUs: docs/npu.md" if tensor.device.type == "npu" else ""
            raise UserError(
                f"Kerf compiles for the CPU only; a tensor of this graph is on {tensor.device}{hint}"
            )
        if tensor.layout != torch.strided:
            raise CannotImport(f"a tensor of layout {tensor.layout}")
        return _name(tensor.dtype), self.sizes.sizes(tensor.shape), self.sizes.sizes(tensor.stride())

    # Calls

    def call(self, node: fx.Node) -> Any:
        if node.target is operator.getitem:
            source = self.env[node.args[0]]
            if isinstance(source, (tuple, list)):
                return source[node.args[1]]
        value = node.meta.get("val")
        if is_size(value) or isinstance(value, (bool, float, torch.SymBool, torch.SymFloat)):
            return value  # computed from sizes alone: the traced expression says all
        if node.target is _COPY and self.env[node.args[0]] in self.passed:
            return self.assign(node)
        if node.target in _SIZE_STATEMENTS:
            return None
        if node.target in _ASSERTIONS:
            return self.build(node, []) and None
        if str(node.target).startswith("aten.quantize_"):
            raise CannotImport("a quantised tensor, which tracing takes for one of floats")
        if node.target is _AS_STRIDED_SCATTER:
            _refuse_overlap(*node.args[2:4], self.sources.of(node))
        if value is None or (isinstance(node.target, torch._ops.OpOverload) and is_mutable(node.target)):
            raise CannotImport(f"{node.target} has an effect besides its results")
        results = [None if leaf is None else self.type_of(leaf) for leaf in _tensors(value)]
        values = self.build(node, results)
        return _structure(value, iter(values)) if values else None

    def build(self, node: fx.Node, results: list[Any]) -> list[Any]:
        source = self.sources.of(node)
        if self.refused is not None:
            source = f"{node.name}: {source}"
        if not isinstance(node.target, torch._ops.OpOverload):
            return self.call_python(
                node, results, f"{_callable_name(node.target)} is called in Python", source
            )
        try:
            arguments, keyword_only = self.schema_arguments(node)
        except _NotRepresentable as error:
            return self.call_python(node, results, f"{node.target}: {error}", source)
        obstacle = (self.refused or {}).get(node.name, "")
        if self.fallback_random and is_random(node.target):
            obstacle = "random values as eager's: option fallback_random"
            if not node.users:
                results = []  # called for what it does to the generator
        return self.builder.call(str(node.target), arguments, keyword_only, results, source, obstacle)

    def schema_arguments(self, node: fx.Node) -> tuple[list[Any], list[str]]:
        """All arguments of the schema in order, defaults filled in, and the names of the keyword-only."""
        arguments, keyword_only = [], []
        given = _on_storage(node) if node.target is _AS_STRIDED else node.args
        for i, parameter in enumerate(_parameters(node.target)):
            if parameter.kwarg_only:
                keyword_only.append(parameter.name)
            value = given[i] if i < len(given) else node.kwargs.get(parameter.name, parameter.default)
            arguments.append(self.convert(parameter.as_declared(value), parameter.takes_values))
        return arguments, keyword_only

    def convert(self, value: Any, takes_values: bool = False) -> Any:
        if isinstance(value, fx.Node):
            value = self.env[value]
        match value:
            case None | bool() | float() | str() | _core.Value():
                return value
            case int():
                if not -(2**63) <= value < 2**63:
                    raise _NotRepresentable(f"the number {value}")
                return value
            case torch.SymInt():
                return self.scalar(value)
            case torch.SymFloat() if takes_values:
                return self.scalar(value)
            case torch.dtype():
                return _core.Constant("dtype", _name(value))
            case torch.layout():
                return _core.Constant("layout", _name(value))
            case torch.memory_format():
                return _core.Constant("memory_format", _name(value))
            case torch.device():
                return _core.Constant("device", str(value))
            case tuple() | list():
                return [self.convert(item) for item in value]
        raise _NotRepresentable(f"an argument of type {type(value).__name__}")

    def scalar(self, value: torch.SymInt | torch.SymFloat) -> Any:
        try:
            if isinstance(value, torch.SymFloat):
                return float_value(self.builder, self.sizes, value.node.expr)
            return self.sizes.size(value)
        except NoIndexText as error:
            raise _NotRepresentable(str(error)) from error

    def call_python(self, node: fx.Node, results: list[Any], reason: str, source: str) -> list[Any]:
        leaves: list[Any] = []
        function = PythonCall(
            node.target, self.template(node.args, leaves), self.template(node.kwargs, leaves)
        )
        self.functions.append(function)
        return self.builder.call_python(len(self.functions) - 1, leaves, results, reason, source)

    def template(self, value: Any, leaves: list[Any]) -> Any:
        """`value` with Slots for what a call supplies; appends to `leaves` what goes there."""
        if isinstance(value, fx.Node):
            return self.template(self.env[value], leaves)
        if isinstance(value, _core.Value):
            leaves.append(value)
            return Slot(len(leaves) - 1)
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            symbols = {}
            for symbol in sorted(value.node.expr.free_symbols, key=str):
                leaves.append(_core.Size(self.sizes.text(symbol)))
                symbols[symbol] = len(leaves) - 1
            return ComputedSlot(value.node.expr, symbols, value.node.pytype)
        if isinstance(value, (tuple, list)):
            return type(value)(self.template(item, leaves) for item in value)
        if isinstance(value, dict):
            return {key: self.template(item, leaves) for key, item in value.items()}
        return value

    def assign(self, node: fx.Node) -> Any:
        target, value = (self.env[a] for a in node.args[:2])
        position = self.passed[target]
        if position < len(self.arguments) and self.arguments[position] == _core.ArgumentKind.resolved:
            raise CannotImport("an argument with a lazy conjugation or negation is written to")
        source = self.sources.of(node) or self.sources.of(node.args[1])
        assigned = self.builder.assign(target, value, source)
        # The caller's object holds the new value when the call ends.
        self.passed[assigned] = position
        self.env[node.args[0]] = assigned
        return assigned

    # Results

    def output(self, node: fx.Node) -> None:
        """The same node twice is one tensor object twice; another node of the same value (detach) is another
        object over the same memory. An argument is the caller's own object.
        """
        outputs: dict[Any, tuple[int, fx.Node]] = {}  # Value -> output of the plan, and the node that it is
        for position, item in enumerate(node.args[0]):
            value = self.env[item] if isinstance(item, fx.Node) else item
            if isinstance(value, _core.Value) and value in self.passed:
                is_object = item.op in ("placeholder", "get_attr") or item.target is _COPY
                self.results.append((True, self.passed[value], not is_object))
            elif isinstance(value, _core.Value):
                if value not in outputs:
                    outputs[value] = (
                        self.builder.output_tensor(value, position in self.any_strides),
                        item,
                    )
                index, first = outputs[value]
                self.results.append((False, index, item is not first))
            elif value is None:
                self.results.append((False, self.builder.output_none(), False))
            elif is_size(value):
                self.results.append((False, self.builder.output_integer(self.sizes.size(value)), False))
            else:
                raise CannotImport(f"a result of type {type(value).__name__}")


def _name(constant: Any) -> str:
    """ "float32" of torch.float32, "contiguous_format" of torch.contiguous_format."""
    return str(constant).removeprefix("torch.")


def _argument_kind(tensor: torch.Tensor, node: fx.Node) -> Any:
    """Guards fix the conj and neg bits of inputs and saved tensors, but not those of incoming gradients."""
    kind = _core.ArgumentKind
    if tensor.is_conj() or tensor.is_neg() or node.name.startswith("tangents"):
        return kind.resolved
    return kind.tensor if _core.is_computed_dtype(_name(tensor.dtype)) else kind.opaque


def _is_token(node: fx.Node) -> bool:
    """Whether an argument only orders effects: AOTAutograd passes None for it and drops what is returned."""
    return bool(node.users) and all(
        user.target is torch.ops.higher_order.with_effects and user.args[0] is node for user in node.users
    )


def _callable_name(target: Any) -> str:
    return getattr(target, "__name__", None) or str(target)


@dataclasses.dataclass(frozen=True)
class _Parameter:
    """An argument of a schema, which is slow to ask."""

    name: str
    kwarg_only: bool
    default: Any
    is_float: bool
    length: int  # of int[2], 0 for other types
    takes_values: bool  # a computed float as a 0-d value: in place of a tensor, or to fill one

    def as_declared(self, value: Any) -> Any:
        """Python is lax with numbers: 1 where the schema says float, 3 where it says int[2]."""
        if type(value) is int:
            if self.is_float:
                return float(value)
            if self.length:
                return [value] * self.length
        return value


@functools.cache
def _parameters(target: torch._ops.OpOverload) -> tuple[_Parameter, ...]:
    parameters = []
    for argument in target._schema.arguments:
        declared = str(argument.type).removeprefix("Optional[").removesuffix("]")
        length = argument.N or 0 if declared.startswith("List[int") else 0
        parameters.append(
            _Parameter(
                argument.name,
                argument.kwarg_only,
                argument.default_value,
                declared == "float",
                length,
                declared == "Tensor" or target in _FILLS,
            )
        )
    return tuple(parameters)


@functools.cache
def is_mutable(target: torch._ops.OpOverload) -> bool:
    return target._schema.is_mutable


def _on_storage(as_strided: fx.Node) -> tuple[Any, ...]:
    """The arguments of the same as_strided on the tensor whose storage its operand views: it may reach
    outside the operand, and its offset counts from the storage.
    """
    operand, size, stride, *offset = as_strided.args
    if not offset or offset[0] is None:
        offset = [operand.meta["val"].storage_offset()]
    owner = operand
    while _is_view(owner):
        owner = owner.args[0]
    return (owner, size, stride, *offset) if owner is not operand else as_strided.args


def _refuse_overlap(sizes: list[Any], strides: list[Any], source: str) -> None:
    """A write through a view that holds an element twice has no defined result: functionalization and eager
    differ.

    Raises:
        UserError: there is such an element.
    """
    if not all(isinstance(number, int) for number in (*sizes, *strides)):
        return
    axes = sorted((stride, size) for stride, size in zip(strides, sizes, strict=True) if size != 1)
    if all(stride > sum((n - 1) * s for s, n in axes[:i]) for i, (stride, _) in enumerate(axes)):
        return  # every axis steps beyond what those before it reach
    places = {0}
    for stride, size in axes:
        places = {place + i * stride for place in places for i in range(size)}
    if len(places) < math.prod(sizes):
        raise UserError(
            f"a view of sizes {sizes} and strides {strides} is written to and holds elements twice ({source})"
        )


def _is_view(node: fx.Node) -> bool:
    """Whether the node's result lies in the storage of its first argument."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.arguments:
        return False
    alias = node.target._schema.arguments[0].alias_info
    return alias is not None and not alias.is_write


def _tensors(value: Any) -> list[Any]:
    """The tensors and Nones of a result, in order; numbers are not among them."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _tensors(item)]
    return [value] if value is None or isinstance(value, torch.Tensor) else []


def _structure(value: Any, values: Iterator[Any]) -> Any:
    """`value` with its tensors replaced by the next of `values`; None stays None, and uses one up."""
    if isinstance(value, (tuple, list)):
        return tuple(_structure(item, values) for item in value)
    if isinstance(value, torch.Tensor):
        return next(values)
    if value is None:
        next(values)
    return value


class Sources:
    """The user's line of a node: "model.py:12 in forward: x = self.fc(x)"; or, of modules that no line of the
    user calls (those of a Sequential), the module: "module 0.fc (Linear)".
    """

    _FRAME = re.compile(r'File "([^"]+)", line (\d+), in (.+)\n\s*(.*)')
    _TORCH = os.path.dirname(torch.__file__) + os.sep

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, node: fx.Node) -> str:
        trace = node.meta.get("stack_trace")
        if not trace:
            return self._module(node)
        if trace not in self._known:
            self._known[trace] = self._parse(trace)
        return self._known[trace]

    @staticmethod
    def _module(node: fx.Node) -> str:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
        if not stack:
            return ""
        path, kind = list(stack.values())[-1]
        path = re.sub(r"^L\['\w+'\]\.?", "", path)
        return f"module {path} ({getattr(kind, '__name__', kind)})".replace("  ", " ")

    def _parse(self, trace: str) -> str:
        frames = self._FRAME.findall(trace)
        if not frames:
            return ""
        own = [frame for frame in frames if not frame[0].startswith(self._TORCH)]
        path, line, function, code = (own or frames)[-1]
        return f"{os.path.basename(path)}:{line} in {function}: {code.removesuffix('^').strip()}"
