"""Kernel files as `Plan.save` writes them: Python with a function and, as JSON, what is to be known of it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kerf import _core

DTYPES = ("f32", "bf16", "f16", "i64", "i32", "i16", "i8", "u8", "bool")
_BEGIN = re.compile(r"^KERNEL = (?=\{)", re.MULTILINE)
_AXES = re.compile(r"^axes +(.*)$", re.MULTILINE)
# What KERNEL must have, and of which type.
_FIELDS = {
    "name": str,
    "target": str,
    "buffers": list,
    "sizes": dict,
    "extents": dict,
    "cut": dict,
    "blocks": list,
    "grid": list,
    "tolerance": (int, float),
}


class Target(NamedTuple):
    bishengir: str
    ub_bytes: int
    a5: bool


TARGETS = {name: Target(*facts) for name, *facts in _core.npu_targets()}


class InputError(Exception):
    """What was given cannot be checked; the message names the file and says why."""


@dataclass(frozen=True)
class KernelFile:
    path: Path
    text: str
    facts: dict[str, Any]
    """KERNEL."""

    @property
    def name(self) -> str:
        return self.facts["name"]

    @property
    def target(self) -> str:
        return self.facts["target"]

    @property
    def blocks(self) -> list[dict[str, int]]:
        """Choices of tiles, the largest first."""
        return self.facts["blocks"]

    def fitting_targets(self) -> list[str]:
        """Its own and all with as much memory as that."""
        own = TARGETS[self.target.removeprefix("npu:")]
        return [name for name, target in TARGETS.items() if target.ub_bytes >= own.ub_bytes]

    def axes(self) -> str:
        """In the words of the file's head, or else as KERNEL has the extents."""
        head = _AXES.search(self.text)
        return head[1] if head else ", ".join(f"{axis} < {n}" for axis, n in self.facts["extents"].items())


def tile_text(blocks: dict[str, int]) -> str:
    return " x ".join(map(str, blocks.values())) or "1"


def read_kernel_file(path: Path) -> KernelFile:
    """Raises InputError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    begin = _BEGIN.search(text)
    if begin is None:
        raise InputError(f"{path}: has no line that begins with `KERNEL = {{`: it is no kernel file of Kerf")
    try:
        facts, _ = json.JSONDecoder().raw_decode(text, begin.end())
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: KERNEL is no JSON: {error.msg}") from None
    _check_facts(path, facts)
    return KernelFile(path, text, facts)


def find_kernel_files(paths: Sequence[Path]) -> list[KernelFile]:
    """Those given, and those that lie in a folder that was given. Raises InputError."""
    found: list[KernelFile] = []
    for path in paths:
        if path.is_dir():
            inside = [f for f in sorted(path.glob("*.py")) if _BEGIN.search(f.read_text(errors="replace"))]
            if not inside:
                raise InputError(f"{path}: no kernel file (a .py with KERNEL) lies in this folder")
            found += map(read_kernel_file, inside)
        elif path.exists():
            found.append(read_kernel_file(path))
        else:
            raise InputError(f"{path}: does not exist")
    return found


def _check_facts(path: Path, facts: dict[str, Any]) -> None:
    def refuse(why: str) -> None:
        raise InputError(f"{path}: KERNEL {why}")

    for field, kind in _FIELDS.items():
        if not isinstance(facts.get(field), kind):
            refuse(f'has no "{field}"' if field not in facts else f'has a "{field}" of the wrong type')
    if facts["target"] not in (targets := [f"npu:{name}" for name in TARGETS]):
        refuse(f'is for "{facts["target"]}"; npu-check is about {", ".join(targets)}')
    for buffer in facts["buffers"]:
        known = {"name": str, "elements": int, "dtype": str, "mode": str}
        if not all(isinstance(buffer.get(field), kind) for field, kind in known.items()):
            refuse(f"has a buffer without name, elements, dtype or mode: {buffer}")
        if buffer["dtype"] not in DTYPES or buffer["mode"] not in ("in", "out", "inout"):
            refuse(f"has a buffer of unknown dtype or mode: {buffer}")
    if not facts["blocks"] or len({tuple(choice) for choice in facts["blocks"]}) != 1:
        refuse("needs at least one choice of blocks, all of the same names")
    if facts["cut"].keys() != facts["extents"].keys():
        refuse('must name the same axes in "extents" and "cut"')
    known = facts["extents"] | facts["sizes"] | facts["blocks"][0]
    for pair in facts["grid"]:
        try:
            extent, block = (eval(str(part), {}, known) for part in pair)  # of a dynamic axis: over sizes
        except Exception:
            refuse(f"has a grid entry that is no pair of known extent and block: {pair}")
