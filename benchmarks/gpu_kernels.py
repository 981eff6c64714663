#!/usr/bin/env python3
"""Runs saved kernel files (Plan.save with target "cuda") on a GPU: builds, checks and times each alone.

    benchmarks/gpu_kernels.py FOLDER... [--output FILE.json] [--jobs 8]

Needs torch and triton, not Kerf. A kernel is checked as its own file does, at cut extents, and timed at full
ones; `of copy` is its bytes a second by those of a device copy of 1 GiB.
"""

import argparse
import importlib.util
import json
import multiprocessing
import statistics
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

MOST_BYTES = 32 << 30  # of a kernel's buffers; larger ones are not timed


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem.lstrip("0123456789_"), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def microseconds(run: Any, rounds: int = 20) -> float:
    """Median time of `run` on the device."""
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def full_buffers(module: Any) -> list[torch.Tensor] | None:
    """Zeros at full extents; None where they take more than MOST_BYTES."""
    described = [(b["elements"], module.DTYPES[b["dtype"]]) for b in module.KERNEL["buffers"]]
    if sum(count * dtype.itemsize for count, dtype in described) > MOST_BYTES:
        return None
    return [torch.zeros(count, dtype=dtype, device="cuda") for count, dtype in described]


def check(path: Path) -> dict[str, Any]:
    """One kernel alone: builds and checks it, and builds it for full extents."""
    try:
        module = load(path)
        info = module.KERNEL
        start = time.perf_counter()
        error = module.check(getattr(module, info["name"]), info, path.with_suffix(".npz"))
        seconds = time.perf_counter() - start
        if buffers := full_buffers(module):
            module.run(getattr(module, info["name"]), info, buffers, info["extents"], info["blocks"][0])
            torch.cuda.synchronize()
        return {"error": error, "seconds": seconds}
    except Exception as error:  # a kernel that does not build or is wrong is a row of the table
        text = "".join(traceback.format_exception_only(error)).strip().splitlines()
        return {"failed": " | ".join(text)[-400:]}


def time_kernel(path: Path) -> float | None:
    """Microseconds at full extents, of a kernel that is built."""
    module = load(path)
    info = module.KERNEL
    buffers = full_buffers(module)
    if buffers is None:
        return None
    kernel = getattr(module, info["name"])
    return microseconds(lambda: module.run(kernel, info, buffers, info["extents"], info["blocks"][0]))


def copy_bandwidth() -> float:
    """Bytes a microsecond, reads and writes, of a device copy."""
    x = torch.zeros(1 << 30, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.numel() / microseconds(lambda: y.copy_(x))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--jobs", type=int, default=8, help="processes that build and check")
    options = parser.parse_args()
    rows = []
    for folder in options.folders:
        plan = json.loads((folder / "plan.json").read_text())
        rows += [
            {"path": folder / k["file"], "kernel": f"{folder.name}/{k['file']}", "bytes": k["bytes"]}
            for k in plan["kernels"]
        ]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for row, result in zip(rows, pool.map(check, [row["path"] for row in rows]), strict=True):
            row.update(result)
            if "failed" in result:
                print(row["kernel"], result["failed"], flush=True)
    copied = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, copy {copied / 1e6:.2f} TB/s", flush=True)
    for row in rows:
        if "failed" in row or (us := time_kernel(row["path"])) is None:
            continue
        row["us"], row["of_copy"] = us, row["bytes"] / us / copied
    failed = sum("failed" in row for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} kernels build and are right")
    if options.output:
        table = [{k: v for k, v in row.items() if k != "path"} for row in rows]
        options.output.write_text(json.dumps({"copy": copied, "rows": table}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
