"""Level 2b: the front end's linalg, compiled for the host and run at cut extents against the expected values.

Memory that the kernel makes begins as NaN, buffers end at forbidden pages. With request["vendor"] it is the
IR after the device compiler's own rewrites: its formulas of erf, tanh and others, its division through f32.
"""

import ctypes
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from buffers import Buffer
from cut_run import CutRun
from level1 import Rejected, lower
from level3 import compile_command
from messages import plain

_TO_TENSORS = "--convert-elementwise-to-linalg --linalg-generalize-named-ops --empty-tensor-to-alloc-tensor"
_TO_MEMORY = (
    "--one-shot-bufferize=bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops=1"
)
_TO_LLVM = """--convert-linalg-to-loops --expand-strided-metadata --lower-affine --convert-scf-to-cf
--convert-ub-to-llvm --convert-math-to-llvm --convert-math-to-libm --convert-arith-to-llvm
--convert-index-to-llvm --finalize-memref-to-llvm --convert-func-to-llvm --convert-cf-to-llvm
--reconcile-unrealized-casts"""
_PASSES = [*_TO_TENSORS.split(), _TO_MEMORY, *_TO_LLVM.split()]
_HOST_NAMES = """malloc=shim_malloc free=shim_free memrefCopy=shim_copy __truncsfbf2=shim_truncate_bf16
__hmf_atanf=atanf __hmf_isinf=shim_isinf __hmf_isnan=shim_isnan __hmf_log1pf=log1pf __hmf_powf=powf
__hmf_recipf=shim_recip __hmf_reluf=shim_relu __hmf_roundf=roundf __hmf_tanf=tanf __hmf_tanhf=tanhf"""
_SYMBOLS = dict(pair.split("=") for pair in _HOST_NAMES.split())
_lowered: dict[str, str] = {}  # of the last kernel alone, which both runs begin with
_HIDDEN_ATTRIBUTES = re.compile(r" (?:attributes )?\{[^{}\n]*\bhacc\.[^{}\n]*\}")
_MODULE_HEAD = re.compile(r"^(#\S+ = .*\n)*module attributes .* \{\n")
_DEFINITION = re.compile(r"^define void @(\w+)\((.*)\)", re.MULTILINE)
# Operations of the device compiler that its own conversion leaves, or lowers wrongly (vnot).
_BINARY = {"minf": "min_signed", "maxf": "max_signed"}
_NOT = re.compile(
    r"%(\S+) = hfusion\.elemwise_unary \{fun = #hfusion\.unary_fn<vnot>\} "
    r"ins\((%\S+) : (tensor<\S*i\d+>)\) outs\(.*"
)
_CAST = re.compile(
    r"%(?P<name>\S+) = "
    r"(?P<head>hfusion\.cast \{.*round_mode = #hfusion\.round_mode<)(?P<mode>\w+)(?P<tail>>.*\}) "
    r"ins\((?P<source>%\S+) : (?P<from>tensor<\S*>)\) outs\((?P<out>.*)\) -> (?P<to>\S+)"
)
_INTERLEAVE = re.compile(r"%(\S+) = hfusion\.interleave (%\S+), (%\S+) : (tensor<\S+>), \S+ -> (tensor<\S+>)")
# The bytes of a constant shape, as newer readers of LLVM's text do not take them.
_SIZE = re.compile(r"mul \(i64 ptrtoint \(ptr getelementptr \(i64, ptr null, i32 1\) to i64\), i64 (\d+)\)")
_ROUNDINGS = {"floor": "floor", "ceil": "ceil", "round": "round", "rint": "roundeven", "trunc": "trunc"}
_ENDINGS = {2: "divides a whole number by zero", 3: "needs more memory than the host has for one program"}


def check(function: Any, request: dict[str, Any]) -> dict[str, Any]:
    run = CutRun(request["kernel"], request["values"])
    try:
        text = _linalg(function, request, run.constants)
    except Rejected as error:
        return {"verdict": "reject", "message": str(error)}
    if request["vendor"]:
        text = _as_rewritten_for_device(text, request)
    fault = HostKernel(llvm_text(text, request), request).run(run)
    return {"verdict": "fail", "message": fault} if fault else run.judge()


def _linalg(function: Any, request: dict[str, Any], constants: dict[str, int]) -> str:
    key = f"{request['path']} {constants}"
    if key not in _lowered:
        _lowered.clear()
        _lowered[key] = lower(function, request["kernel"], constants, a5=False).linalg
    return _lowered[key]


def _pipe(command: list[str | Path], text: str) -> str:
    result = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace")
    if result.returncode:
        raise RuntimeError(f"{Path(command[0]).name}: {plain(result.stderr)}")
    return result.stdout


def _as_rewritten_for_device(text: str, request: dict[str, Any]) -> str:
    """The module after the last of bishengir's normalisations, in upstream's operations."""
    name = "hfusion-normalize-ops"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.mlir"
        source.write_text(text)
        dumps = [f"--mlir-print-ir-tree-dir={folder}/dumps", f"--mlir-print-ir-after={name}"]
        command = compile_command(request["compilers"], source, "Ascend910B3")
        # What comes later may refuse the kernel, for its size say; that is level 3's to tell.
        log = subprocess.run(
            [*command, *dumps, "-o", f"{folder}/kernel"], cwd=folder, capture_output=True, text=True
        )
        found = list(Path(folder, "dumps").rglob(f"*{name}.mlir"))
        if not found:
            raise RuntimeError(f"bishengir-compile did not come to {name}: {plain(log.stderr)}")
        last = max(found, key=lambda path: [int(number) for number in re.findall(r"(\d+)_", path.name)])
        text = last.read_text()
    upstream = "--execution-engine-convert-hfusion-to-upstream"
    text = _pipe([Path(request["compilers"]) / "bishengir-opt", "-", upstream], text)
    for ours, theirs in _BINARY.items():
        text = text.replace(
            f"hfusion.elemwise_binary {{fun = #hfusion.binary_fn<{ours}>}}",
            f"linalg.elemwise_binary {{fun = #linalg.binary_fn<{theirs}>}}",
        )
    return _CAST.sub(_with_rounding, _NOT.sub(_as_xor, _INTERLEAVE.sub(_as_slices, text)))


def _as_slices(joined: re.Match[str]) -> str:
    """Every second element along the last dimension, in upstream's operations."""
    name, *halves, half, whole = joined.groups()
    lines, into = [f"%empty_{name} = tensor.empty() : {whole}"], f"%empty_{name}"
    *outer, last = half.removeprefix("tensor<").split("x")[:-1]
    for i, source in enumerate(halves):
        out = f"%{name}" if i else f"%first_{name}"
        at, size = ", ".join([*"0" * len(outer), str(i)]), ", ".join([*outer, last])
        step = ", ".join([*"1" * len(outer), "2"])
        place = f"{into}[{at}] [{size}] [{step}] : {half} into {whole}"
        lines.append(f"{out} = tensor.insert_slice {source} into {place}")
        into = out
    return "\n    ".join(lines)


def _as_xor(negation: re.Match[str]) -> str:
    name, source, kind = negation.groups()
    ones = "true" if re.search(r"\bi1>|xi1>", kind) else "-1"
    return (
        f"%ones_{name} = arith.constant dense<{ones}> : {kind}\n"
        f"    %{name} = arith.xori {source}, %ones_{name} : {kind}"
    )


def _with_rounding(cast: re.Match[str]) -> str:
    """Casts to whole numbers with their rounding as an operation of its own; upstream's lowering drops it."""
    mode, source = cast["mode"], cast["from"]
    from_float, to_float = (bool(re.search(r"f\d+>$", kind)) for kind in (source, cast["to"]))
    if not from_float or (to_float and source != cast["to"] and mode == "rint"):
        return cast[0]
    if mode not in _ROUNDINGS or (to_float and source != cast["to"]):
        raise NotImplementedError(f"a cast of {source} to {cast['to']} that rounds by {mode}")
    rounding = f"math.{_ROUNDINGS[mode]} {cast['source']} : {source}"
    if to_float:
        return f"%{cast['name']} = {rounding}"
    whole = f"%whole_{cast['name']}"
    ends = f"ins({whole} : {source}) outs({cast['out']}) -> {cast['to']}"
    return f"{whole} = {rounding}\n    %{cast['name']} = {cast['head']}trunc{cast['tail']} {ends}"


def llvm_text(text: str, request: dict[str, Any]) -> str:
    text = _pipe([Path(request["compilers"]) / "bishengir-opt", "-", *_PASSES], text)
    # mlir-translate knows nothing of the device's attributes.
    text = _HIDDEN_ATTRIBUTES.sub("", _MODULE_HEAD.sub("module {\n", text))
    text = _pipe([Path(request["translate"]), "--mlir-to-llvmir", "-"], text)
    return _SIZE.sub(lambda words: str(8 * int(words[1])), text)


def _with_entry(text: str, name: str) -> str:
    """Adds a function that takes all arguments as an array of 64-bit words."""
    found = next(match for match in _DEFINITION.finditer(text) if match[1] == name)
    kinds = [argument.split()[0] for argument in found[2].split(",")]
    lines = []
    for i, kind in enumerate(kinds):
        lines.append(f"%p{i} = getelementptr i64, ptr %words, i64 {i}")
        lines.append(f"%a{i} = load {kind}, ptr %p{i}")
    arguments = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    body = "\n  ".join([*lines, f"call void @{name}({arguments})", "ret void"])
    return f"{text}\ndefine void @kerf_entry(ptr %words) {{\n  {body}\n}}\n"


# The run


def _load_shim(path: str) -> ctypes.CDLL:
    shim = ctypes.CDLL(path)
    llvm.load_library_permanently(path)  # and with it the C library's functions
    shim.shim_bad_address.restype = ctypes.c_size_t
    shim.shim_run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    for name, symbol in _SYMBOLS.items():
        llvm.add_symbol(name, ctypes.cast(getattr(shim, symbol), ctypes.c_void_p).value)
    return shim


def _has_host_form(name: str) -> bool:
    return name.startswith("llvm.") or llvm.address_of_symbol(name) is not None


def _words(run: CutRun) -> list[int]:
    """Two memrefs, empty here (lock, workspace), the buffers, the sizes, the grid and the place in it."""
    memrefs = [(0, 0, 0, 0, 1)] * 2
    memrefs += [(b.begin, b.begin, 0, b.data.size, 1) for b in run.buffers]
    return [word for memref in memrefs for word in memref] + run.sizes + [run.programs, 1, 1, 0, 0, 0]


class HostKernel:
    """LLVM's text as code of the host. Raises NotImplementedError for functions that only the device has."""

    def __init__(self, text: str, request: dict[str, Any]) -> None:
        self._shim = _load_shim(request["shim"])
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(_with_entry(text, request["kernel"]["name"]))
        unknown = [f.name for f in module.functions if f.is_declaration and not _has_host_form(f.name)]
        if unknown:
            raise NotImplementedError(f"{', '.join(unknown)}: no such function on the host")
        module.triple = llvm.get_default_triple()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True
        )
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def run(self, run: CutRun) -> str:
        """What went wrong, or nothing."""
        words = _words(run)
        array = (ctypes.c_int64 * len(words))(*words)
        place = len(words) - 3
        entry = self._engine.get_function_address("kerf_entry")
        ending = self._shim.shim_run(entry, array, place, run.programs)
        if ending == 0:
            return ""
        if ending == 1:
            return f"program {array[place]} {_bad_access(self._shim.shim_bad_address(), run.buffers)}"
        return f"program {array[place]} {_ENDINGS[ending]}"


def _bad_access(address: int, buffers: list[Buffer]) -> str:
    for buffer in buffers:
        if buffer.begin <= address < buffer.end:
            return f"writes to {buffer.name}, which it may only read"
        if 0 <= address - buffer.end < 4096:
            return f"reads or writes past the end of {buffer.name}"
    return f"touches memory that is in no buffer, at {address:#x}"
