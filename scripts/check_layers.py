#!/usr/bin/env python3
"""Checks who includes whom: the dependency direction between the folders of core/, and that the headers of
LLVM, CUDA and Python are each seen in one folder only.

    scripts/check_layers.py [ROOT]

Prints one line per violation, `file:line: what`, and exits with 1 if there is any.
"""

import re
import sys
from pathlib import Path

_DATA = {"base", "sym", "ops", "target"}
_LOOPS = _DATA | {"loop"}
_CODEGEN = _LOOPS | {"axis", "codegen"}
_DRIVEN = _CODEGEN | {"codegen/triton", "graph", "lower", "sched", "runtime"}

# What each folder may include besides itself. `codegen` alone is the interface that the generators implement.
ALLOWED = {
    "base": set(),
    "sym": {"base"},
    "ops": {"base"},
    "target": {"base", "sym"},
    "graph": _DATA,
    "partition": _DATA | {"graph"},
    "loop": _DATA,
    "lower": _LOOPS | {"graph"},
    "axis": _LOOPS,
    "sched": _LOOPS | {"axis"},
    "codegen": _LOOPS,
    "codegen/llvm": _CODEGEN,
    "codegen/no_llvm": _CODEGEN,
    "codegen/triton": _CODEGEN,
    "codegen/vm": _CODEGEN,
    "runtime": {"base", "sym", "target"},
    "driver": _DRIVEN,
    "tools": _DRIVEN | {"driver"},
    "bindings": _DATA | {"graph", "partition", "runtime", "driver"},
    "tests": _DRIVEN | {"partition", "driver"},
}

# Headers from outside that only these folders may see; the first match decides.
FOREIGN = [
    (re.compile(r"llvm(-c)?/"), {"codegen/llvm"}),
    (re.compile(r"(Python\.h|nanobind/)"), {"bindings"}),
    (re.compile(r"(torch|ATen|c10)/"), set()),
    (re.compile(r"(cuda|cuda_runtime|nvrtc)\.h"), {"runtime/cuda"}),
    (re.compile(r"CLI/"), {"tools"}),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCES = {".cpp", ".h", ".def", ".inc"}


def folder_of(path: Path) -> str:
    """The layer of a file or of an included path, relative to core/ or to the root for bindings and tests."""
    parts = path.parts
    if parts[0] == "codegen":
        return "/".join(parts[:2]) if len(parts) > 2 else "codegen"
    return parts[0]


def include_error(root: Path, layer: str, path: Path, quoted: bool, target: str) -> str | None:
    """Why the file `path` (relative to the root) of `layer` may not include `target`, or None."""
    for pattern, owners in FOREIGN:
        if pattern.match(target):
            seen_by = any(path.is_relative_to(Path("core") / owner) or layer == owner for owner in owners)
            return None if seen_by else f"only {', '.join(sorted(owners)) or 'nobody'} may include {target}"
    if (root / "core" / target).is_file():
        included = folder_of(Path(target))
        if included == layer or included in ALLOWED[layer]:
            return None
        return f"{layer} may not include {included} ({target})"
    if quoted and layer not in ("tests", "bindings"):
        return f"{target} is not a file under core/"
    return None


def check_file(root: Path, path: Path) -> list[str]:
    relative = path.relative_to(root)
    layer = folder_of(relative.relative_to("core") if relative.parts[0] == "core" else relative)
    if layer not in ALLOWED:
        return [f"{relative}:1: {layer} is not in the table of scripts/check_layers.py"]
    errors = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        error = match and include_error(root, layer, relative, match[1] == '"', match[2])
        if error:
            errors.append(f"{relative}:{number}: {error}")
    return errors


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    files = [
        path
        for folder in ("core", "bindings", "tests")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SOURCES
    ]
    errors = [error for path in files for error in check_file(root, path)]
    for error in errors:
        print(error)
    print(f"layers: {len(files)} files, {len(errors)} violations")
    return 1 if errors or not files else 0


if __name__ == "__main__":
    sys.exit(main())
