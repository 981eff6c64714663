"""A run of a kernel at its cut extents: memory, number of programs, and the judgement of what it wrote."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from buffers import Buffer, numbers

_MOST_BYTES = 4 << 30


class CutRun:
    def __init__(self, kernel: dict[str, Any], values_path: str) -> None:
        self.constants = kernel["cut"] | kernel["blocks"][0]
        self.sizes: list[int] = list(kernel["sizes"].values())
        self.programs = _programs(kernel, self.constants)
        self._tolerance = kernel["tolerance"]
        if not Path(values_path).exists():
            raise FileNotFoundError(f"{values_path}, the expected values, does not exist")
        self._expected = np.load(values_path)
        elements = sum(b.get("cut_elements", b["elements"]) for b in kernel["buffers"])
        if elements * 4 > _MOST_BYTES:
            raise MemoryError(f"{elements} elements are too many for a run on the host")
        self.buffers = [Buffer(facts, number) for number, facts in enumerate(kernel["buffers"])]

    def judge(self) -> dict[str, Any]:
        """The verdict, and the largest error in units of the largest expected value."""
        faults: list[str] = []
        worst = 0.0
        for buffer in self.buffers:
            if buffer.mode != "in":
                error, fault = self._judge(buffer)
                worst = max(worst, error)
                faults += [fault] if fault else []
        verdict = "fail" if faults else "ok"
        error = worst if math.isfinite(worst) else None  # JSON has no infinity
        return {"verdict": verdict, "message": "; ".join(faults), "error": error}

    def _judge(self, buffer: Buffer) -> tuple[float, str]:
        if buffer.name not in self._expected or f"{buffer.name}_at" not in self._expected:
            return 0.0, f"no values are expected of {buffer.name}"
        at, want = self._expected[f"{buffer.name}_at"], self._expected[buffer.name]
        stray = buffer.written(at)
        if stray.size:
            return 0.0, (
                f"{buffer.name}: {stray.size} elements were written that are not the kernel's, "
                f"the first at {stray[0]}"
            )
        got = numbers(buffer.data[at], buffer.dtype)
        error, bad = compare(got, want, self._tolerance, self._expected.get(f"{buffer.name}_bound", 0.0))
        if not bad.any():
            return error, ""
        first = int(np.flatnonzero(bad)[0])
        return error, (
            f"{buffer.name}: {np.count_nonzero(bad)} of {bad.size} elements are off, "
            f"the first at {at[first]}: {got[first]}, expected {want[first]}"
        )


def compare(
    got: np.ndarray, want: np.ndarray, tolerance: float, bound: np.ndarray | float = 0.0
) -> tuple[float, np.ndarray]:
    """The largest error in units of the largest finite expected value, and which elements are off.

    An element may be off by the tolerance, in such units, or by its bound: how far its own rounding may lead.
    """
    if want.dtype.kind != "f":
        return 0.0, got != want
    finite = np.isfinite(want)
    scale = float(np.max(np.abs(want), where=finite, initial=0.0))
    equal = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        distance = np.where(equal, 0.0, np.abs(got - want))
    bad = ~equal & ~(finite & (distance <= np.maximum(tolerance * scale, bound)))
    largest = float(np.max(np.nan_to_num(distance, nan=math.inf, posinf=math.inf), initial=0.0))
    return (largest / scale if scale else largest), bad


def _programs(kernel: dict[str, Any], constants: dict[str, int]) -> int:
    """Half as many as there are tiles, so that some run their loop more than once."""
    known = constants | kernel["sizes"]
    tiles = 1
    for extent, block in kernel["grid"]:
        extent, block = (eval(str(part), {}, known) for part in (extent, block))
        tiles *= -(-extent // block)
    return max(1, min(-(-tiles // 2), kernel.get("cores", tiles)))
