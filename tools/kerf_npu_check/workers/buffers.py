"""Memory of a run: inputs by formula, outputs that begin as one byte, forbidden pages around each."""

import ctypes
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

UNTOUCHED = 0x5A
_NO_VALUE = 0xFF  # a NaN, or -1, before the first element
_CHUNK = 1 << 16
_BURST = 32
# How elements are stored, and what triton calls a pointer to them.
_DTYPES = {
    "f32": (np.float32, "*fp32"),
    "bf16": (np.uint16, "*bf16"),
    "f16": (np.float16, "*fp16"),
    "i64": (np.int64, "*i64"),
    "i32": (np.int32, "*i32"),
    "i16": (np.int16, "*i16"),
    "i8": (np.int8, "*i8"),
    "u8": (np.uint8, "*u8"),
    "bool": (np.uint8, "*i1"),
}
_STORED = {dtype: stored for dtype, (stored, _) in _DTYPES.items()}
POINTER_TYPES = {dtype: pointer for dtype, (_, pointer) in _DTYPES.items()}
FLOATS = ("f32", "bf16", "f16")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_READ_ONLY = 1


class Buffer:
    """Elements that end where a forbidden page begins. An input may be read only."""

    def __init__(self, facts: dict[str, Any], number: int) -> None:
        self.name, self.dtype, self.mode = facts["name"], facts["dtype"], facts["mode"]
        self._below, self._number = facts.get("below"), number
        kind = np.dtype(_STORED[self.dtype])
        # Strided loads copy whole bursts: where a cut run ends within one, the buffer does not end yet.
        burst = _BURST // kind.itemsize
        reached = facts.get("cut_elements", facts["elements"])
        count = min(facts["elements"], -(-reached // burst) * burst)
        size = count * kind.itemsize
        page = mmap.PAGESIZE
        inner = -(-size // page) * page
        self._map = mmap.mmap(-1, inner + 2 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + page
        self.begin, self.end = start + inner - size, start + inner
        self.data = np.frombuffer(self._map, kind, count, page + inner - size)
        self._before = np.frombuffer(self._map, np.uint8, inner - size, page)
        self._before[:] = _NO_VALUE
        for part, values in self._initial():
            self.data[part] = values
        _protect(start - page, page, 0)
        _protect(self.end, page, 0)
        if self.mode == "in" and inner:
            _protect(start, inner, _READ_ONLY)

    def written(self, owned: np.ndarray) -> np.ndarray:
        """Positions that are not `owned` and yet no longer what they were."""
        others = np.ones(self.data.size, bool)
        others[owned] = False
        found = [
            part.start + np.flatnonzero(others[part] & _differ(self.data[part], values))
            for part, values in self._initial()
        ]
        if np.any(self._before != _NO_VALUE):
            found.insert(0, np.array([-1]))
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _initial(self) -> Iterator[tuple[slice, np.ndarray]]:
        for first in range(0, self.data.size, _CHUNK):
            part = slice(first, min(first + _CHUNK, self.data.size))
            count = part.stop - first
            if self.mode == "out":
                untouched = np.full(count * self.data.itemsize, UNTOUCHED, np.uint8)
                yield part, untouched.view(self.data.dtype)
            else:
                yield part, formula(first, count, self._number, self.dtype, self._below)


def _protect(begin: int, size: int, rights: int) -> None:
    if _libc.mprotect(begin, size, rights):
        raise OSError(ctypes.get_errno(), "mprotect failed")


def _differ(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """By bits: a NaN is itself."""
    bits = f"u{left.itemsize}"
    return left.view(bits) != right.view(bits)


def formula(first: int, count: int, number: int, dtype: str, below: int | None) -> np.ndarray:
    """What the elements `first`... of input `number` hold, as they are stored."""
    index = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    h = (index * 2654435761 + number * 40503).astype(np.uint32)
    h = ((h >> 15) ^ h) * np.uint32(2246822519)
    h = (h >> 13) ^ h
    if dtype in FLOATS:
        return rounded(h / 2.0**32 * 4 - 2, dtype)
    if dtype == "bool":
        return ((h >> 5) & 1).astype(np.uint8)
    return (h % (below or 7)).astype(_STORED[dtype])


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """To the nearest f32 and that to the nearest value of `dtype`, as torch converts; ties to even."""
    single = values.astype(np.float32)
    if dtype != "bf16":
        return single.astype(_STORED[dtype])
    bits = single.view(np.uint32)
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(single), 0x7FC0, nearest).astype(np.uint16)


def numbers(stored: np.ndarray, dtype: str) -> np.ndarray:
    """Stored values as float64, int64 or bool."""
    if dtype == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "bool":
        return stored.astype(bool)
    return stored.astype(np.float64 if dtype in FLOATS else np.int64)
