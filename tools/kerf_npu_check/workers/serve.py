"""A worker: answers requests on standard input with lines on standard output.

With TRITON_INTERPRET set, triton is its interpreter and this process is for level 2 only. What a kernel or a
compiler prints goes to standard error. A failure of ours is an answer too: verdict "fail" with the exception.
"""

import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any


def load_kernel(path: str, name: str) -> Any:
    """The function of a kernel file."""
    spec = importlib.util.spec_from_file_location(f"kernel_{Path(path).stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def answer(request: dict[str, Any], levels: dict[str, ModuleType]) -> dict[str, Any]:
    level = request["level"]
    if level not in levels:
        levels[level] = importlib.import_module(level)
    begin = time.perf_counter()
    try:
        kernel = load_kernel(request["path"], request["kernel"]["name"]) if level != "level3" else None
        result = levels[level].check(kernel, request)
    except Exception as error:
        result = {"verdict": "fail", "message": describe(error, request["path"])}
    return result | {"seconds": time.perf_counter() - begin}


def describe(error: BaseException, path: str) -> str:
    """The first cause, with the line of the kernel file if it came from there."""
    frames = traceback.extract_tb(error.__traceback__)
    while error.__cause__:
        error = error.__cause__
        frames += traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename == path]
    place = f"line {inside[-1].lineno}" if inside else f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    return f"{type(error).__name__}: {error} ({place})"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    levels: dict[str, ModuleType] = {}
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), levels)), file=answers, flush=True)


if __name__ == "__main__":
    main()
