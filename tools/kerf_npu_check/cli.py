"""`kerf npu-check`. Status 0: all kernels pass; 1: they do not, or L1 or L3 cannot be run; 2: bad input."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from kerf.errors import KerfError
from kerf.offline.models import save_kernels
from rich.console import Console

from kerf_npu_check import environment, table
from kerf_npu_check.check import LEVELS, check_all
from kerf_npu_check.kernel_file import TARGETS, InputError, find_kernel_files

_FILE_WIDTH = 160


def run(
    paths: Sequence[Path],
    json_path: Path | None = None,
    levels: str = ",".join(LEVELS),
    targets: str = "",
    jobs: int = 0,
    install: bool = False,
    training: bool = False,
    folder: Path = Path(),
) -> int:
    """Models are compiled first, for the target of least memory; their kernels go to `folder`."""
    console, errors = Console(), Console(stderr=True, soft_wrap=True, highlight=False)
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH)
    try:
        if install:
            environment.install(lambda line: console.print(line, highlight=False, soft_wrap=True))
        elif not paths:
            raise InputError("nothing to check: give kernel files or folders of them, or --install")
        if json_path and not json_path.absolute().parent.is_dir():
            raise InputError(f"{json_path}: its folder does not exist")
        chosen = _chosen(levels, LEVELS, "level") or LEVELS, _chosen(targets, tuple(TARGETS), "target")
        smallest = min(chosen[1] or TARGETS, key=lambda name: TARGETS[name].ub_bytes)
        kernels = find_kernel_files(save_kernels(paths, f"npu:{smallest}", training, folder))
    except (InputError, KerfError, environment.InstallError) as error:
        errors.print(f"kerf npu-check: {error}", markup=False)
        return 1 if isinstance(error, environment.InstallError) else 2
    if not kernels:
        return 0
    with console.status("") as status:
        done = 0

        def tell(_: object) -> None:
            nonlocal done
            done += 1
            status.update(f"{done} of {len(kernels)} kernels")

        reports = check_all(kernels, *chosen, jobs or min(4, os.cpu_count() or 1), tell)
    table.print_reports(reports, console)
    if json_path:
        json_path.write_text(json.dumps(table.as_json(reports), indent=1) + "\n")
    return 0 if table.all_passed(reports) else 1


def _chosen(words: str, known: Sequence[str], what: str) -> list[str]:
    """The parts of a comma-separated list, in the order of `known`."""
    chosen = {word.strip().removeprefix("npu:") for word in words.split(",") if word}
    unknown = sorted(chosen - set(known))
    if unknown:
        raise InputError(f"there is no {what} {', '.join(unknown)}; known are {', '.join(known)}")
    return [name for name in known if name in chosen]
