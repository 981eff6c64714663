"""Level 3: bishengir from linalg to the module whose memory is planned and whose pipes are synchronised.

Its last stage, hivmc, is closed: a stub stands for it, so what comes out is facts and no program.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from messages import plain

_A5_PROGRAM = "bishengir-compile-a5"
_ELEMENT_BITS = re.compile(r"(?:bf|[a-z])(\d+)$")
_CONSTANT = re.compile(r"(%c-?\w+) = arith\.constant (-?\d+) : i64")
_PLACED = re.compile(
    r"hivm\.hir\.pointer_cast\(([^)]*)\)[^:\n]*: memref<([^,>]*)[^\n]*?#hivm\.address_space<ub>"
)
_SCALAR = re.compile(r"memref\.(?:load|store) [^\n]*address_space<(?:gm|ub)>")
_ERROR = re.compile(r"error: .*|LLVM ERROR: .*|.*Assertion.*")
_OVERFLOW = re.compile(r"(\w+) overflow, requires (\d+) bits while (\d+) bits available")
_ALLOCATED = re.compile(r"Allocated UB size = (\d+) bits")


def compile_command(compilers: str, source: Path, target: str) -> list[str | Path]:
    """As triton-ascend 3.2.0 calls it, without what this release does not know."""
    a5 = is_a5(target)
    double = "False" if a5 else "True"
    return [
        Path(compilers) / (_A5_PROGRAM if a5 else "bishengir-compile"),
        source,
        f"--target={target}",
        f"--enable-auto-multi-buffer={double}",
        f"--enable-auto-bind-sub-block={double}",
        "--enable-hfusion-compile=true",
        "--enable-hivm-compile=true",
        "--enable-triton-kernel-compile=true",
        *(["--enable-print-memory-allocated-size"] if a5 else []),
    ]


def is_a5(target: str) -> bool:
    return target.startswith("Ascend950")


def check(_: None, request: dict[str, Any]) -> dict[str, Any]:
    """Of the linalg text at request["linalg"]. "retry" fits without double buffering only: too big."""
    target = request["target"]
    with tempfile.TemporaryDirectory() as folder:
        command = compile_command(request["compilers"], Path(request["linalg"]), target)
        result = subprocess.run(
            [*command, f"--save-temps={folder}", "-o", f"{folder}/kernel"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=folder,
        )
        saved = Path(folder) / "module.hivm.opt.mlir"
        module = saved.read_text() if saved.exists() else ""
    log = result.stdout
    if result.returncode:
        return _refused(log, result.returncode)
    facts = module_facts(module, is_a5(target))
    allocated = _ALLOCATED.findall(log)
    if is_a5(target):
        facts["ub_bytes"] = int(allocated[-1]) // 8 if allocated else None
    if "overflow detected" in log:
        return facts | {"verdict": "retry", "message": "fits without double buffering only"}
    if facts["scalar_loops"]:
        return facts | {"verdict": "slow", "message": f"{facts['scalar_loops']} loops over single elements"}
    return facts | {"verdict": "ok", "message": ""}


def _refused(log: str, status: int) -> dict[str, Any]:
    overflow = _OVERFLOW.search(log)
    if overflow:
        what, needed, available = overflow[1], int(overflow[2]) // 8, int(overflow[3]) // 8
        return {
            "verdict": "fail",
            "too_big": True,
            "message": f"{what} overflow: {needed} bytes, {available} available",
        }
    errors = [line for line in dict.fromkeys(_ERROR.findall(log)) if "Failed to run" not in line]
    words = "\n".join(errors[:2]) or log or f"bishengir ended with status {status} and no word"
    return {"verdict": "fail", "message": plain(words)}


def module_facts(module: str, a5: bool) -> dict[str, Any]:
    """Bytes of the unified buffer, and what may stand for cost: vector calls, scalars, synchronisation.

    The module for the A5 is near to LLVM's form and shows neither buffers nor loops over elements.
    """
    constants = {name: int(value) for name, value in _CONSTANT.findall(module)}
    ends = [
        constants[offset.strip()] + _bytes(shape)
        for offsets, shape in ([] if a5 else _PLACED.findall(module))
        for offset in offsets.split(",")
    ]
    return {
        "ub_bytes": max(ends, default=None),
        "calls": len(re.findall(r"\bcall @\w+", module)),
        "loops": module.count("cf.cond_br" if a5 else "scf.for "),
        "scalars": len(_SCALAR.findall(module)),
        "scalar_loops": sum(map(_is_scalar, _innermost_loops(module.splitlines()))),
        "flags": module.count("hivm.hir.set_flag"),
        "barriers": module.count("hivm.hir.pipe_barrier"),
    }


def _innermost_loops(lines: list[str]) -> Iterator[str]:
    """The bodies of loops that contain no loop; what is within stands further to the right."""
    open_loops: list[tuple[str, int]] = []
    for i, line in enumerate(lines):
        margin = line[: len(line) - len(line.lstrip())]
        if "scf.for " in line:
            open_loops.append((margin, i))
        elif open_loops and line.startswith(open_loops[-1][0] + "}"):
            _, first = open_loops.pop()
            body = "\n".join(lines[first + 1 : i])
            if "scf.for " not in body:
                yield body


def _is_scalar(loop: str) -> bool:
    return bool(_SCALAR.search(loop)) and "call @" not in loop


def _bytes(shape: str) -> int:
    *sizes, element = shape.split("x")
    count = 1
    for size in sizes:
        count *= int(size)
    return -(-count * int(_ELEMENT_BITS.match(element)[1]) // 8)
