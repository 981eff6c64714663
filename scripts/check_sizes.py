#!/usr/bin/env python3
"""Checks the length of files: fails beyond the hard limits, names those worth talking about.

    scripts/check_sizes.py [ROOT]

Tables (.def) and golden files have no limit. The Python packages are measured as a whole.
"""

import sys
from pathlib import Path
from typing import NamedTuple


class Limit(NamedTuple):
    talk: int
    stop: int


SOURCE = Limit(500, 1000)
HEADER = Limit(250, 400)
PACKAGES = {  # each without those inside it
    "python/": Limit(2500, 3500),
    "python/kerf/offline/": Limit(500, 1000),
    "tools/kerf_npu_check/": Limit(1000, 1600),
}
LIMITS = {".cpp": SOURCE, ".py": SOURCE, ".sh": SOURCE, ".h": HEADER}
FOLDERS = ("core", "bindings", "python", "tests", "scripts", "examples", "benchmarks", "tools")


def line_count(path: Path) -> int:
    return len(path.read_text().splitlines())


def measure(root: Path) -> list[tuple[str, int, Limit]]:
    """(what, lines, limit) of every limited file and of the Python packages."""
    sizes = [
        (str(path.relative_to(root)), line_count(path), LIMITS[path.suffix])
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in LIMITS and path.is_file()
    ]
    in_all = dict.fromkeys(PACKAGES, 0)
    for what, lines, _ in sizes:
        if folders := [folder for folder in PACKAGES if what.startswith(folder)]:
            in_all[max(folders, key=len)] += lines
    return sizes + [(f"{folder} in all", in_all[folder], limit) for folder, limit in PACKAGES.items()]


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    sizes = measure(root)
    stops = 0
    for what, lines, limit in sizes:
        if lines > limit.stop:
            stops += 1
            print(f"{what}: {lines} lines, over the limit of {limit.stop}: split it")
        elif lines > limit.talk:
            print(f"{what}: {lines} lines, over {limit.talk}: worth a talk (limit {limit.stop})")
    print(f"sizes: {len(sizes) - 1} files, {stops} over a limit")
    return 1 if stops or len(sizes) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
