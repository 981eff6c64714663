"""Level 1: the kernel through triton-ascend's front end, to linalg.

It accepts nearly everything; what it cannot turn into a copy of a strided piece becomes a loop over elements,
or an unmasked copy of the whole tile. So the verdict is read from the IR: ok, slow (why), reject (its words).
"""

import hashlib
import inspect
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import triton
from buffers import POINTER_TYPES
from messages import plain
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError

# What triton-ascend 3.2.0 itself sets for the A5.
_A5 = {
    "compile_on_910_95": True,
    "enable_select_analysis": True,
    "multibuffer": False,
    "enable_auto_bind_sub_block": False,
}
_ADAPTER = Path(triton.__file__).parent / "backends/ascend/triton-adapter-opt"
_MASKED = re.compile(r"tt\.load %\S+, %|tt\.store %\S+, %\S+, %")


class Rejected(Exception):
    """The front end's own words."""


class Lowered(NamedTuple):
    ttir: str
    linalg: str


def lower(function: Any, kernel: dict[str, Any], constants: dict[str, int], a5: bool) -> Lowered:
    """Raises Rejected."""
    target = GPUTarget("npu", "Ascend910B3", 0)  # the front end looks at nothing of it but the options
    backend = make_backend(target)
    options = backend.parse_options(dict(_A5) if a5 else {})
    signature = {f"{buffer['name']}_ptr": POINTER_TYPES[buffer["dtype"]] for buffer in kernel["buffers"]}
    signature |= dict.fromkeys(kernel["sizes"], "i32")
    source = ASTSource(function, signature=signature, constants=constants)
    key = hashlib.sha256(f"{source.hash()} {a5}".encode()).hexdigest()
    metadata = options.__dict__ | {"hash": key, "target": target}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options)
    try:
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        module = source.make_ir(
            options, backend.get_codegen_implementation(), backend.get_module_map(), context
        )
        module = stages["ttir"](module, metadata)
        return Lowered(str(module), stages["ttadapter"](module, metadata))
    except subprocess.CalledProcessError as error:
        raise Rejected(plain(error.stderr.decode(errors="replace"))) from None
    except CompilationError as error:
        line = _first_line(function) + error.node.lineno - 1
        raise Rejected(plain(f"line {line}: {error.error_message or error.__cause__}")) from None
    except Exception as error:
        raise Rejected(plain(f"{type(error).__name__}: {error}")) from error


def _first_line(function: Any) -> int:
    """Of the file, where `def` stands."""
    lines, first = inspect.getsourcelines(function.fn)
    return first + next(i for i, line in enumerate(lines) if line.startswith("def "))


def slow_reasons(lowered: Lowered) -> list[str]:
    """Which accesses are no copy of a strided piece."""
    reasons = []
    loops = lowered.linalg.count("ExtractedLoadOrStore")
    if loops:
        reasons.append(f"{loops} loops over single elements: a pointer is not affine in the axes")
    after = subprocess.run(
        [_ADAPTER, "-", "--discrete-mask-access-conversion"],
        input=lowered.ttir,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lost = len(_MASKED.findall(lowered.ttir)) - len(_MASKED.findall(after))
    if lost > 0 or "DiscreteMask" in after:
        reasons.append(
            f"{max(lost, 1)} masks are lost: whole tiles are copied, and stores rewrite memory past the end"
        )
    return reasons


def check(function: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Writes the linalg text to request["output"]."""
    kernel = request["kernel"]
    try:
        lowered = lower(function, kernel, kernel["extents"] | request["blocks"], request["a5"])
    except Rejected as error:
        return {"verdict": "reject", "message": str(error)}
    Path(request["output"]).write_text(lowered.linalg)
    reasons = slow_reasons(lowered)
    return {"verdict": "slow" if reasons else "ok", "message": "; ".join(reasons)}
