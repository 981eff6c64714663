"""linspace and arange, to the bit of eager's kernels where these do not depend on the vector width."""

import math

import kerf
import pytest
import torch
import torch.nn.functional as F
from compare import compare

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
def test_linspace(dtype: torch.dtype) -> None:
    bounds = [(0, 1), (0.1, 7.3), (5, 1), (1, 1), (0, 100), (3.7, 9.2)]
    if dtype.is_signed:
        bounds += [(-3.3, 2.7), (-128, 127)]
    if dtype in (torch.float32, torch.float64, torch.int64):
        bounds += [(1e-3, 1e5), (1e6, 1e7)]

    def function() -> list[torch.Tensor]:
        steps = (0, 1, 2, 3, 7, 16, 31, 33, 257, 1000)
        return [torch.linspace(start, end, n, dtype=dtype) for start, end in bounds for n in steps]

    results = torch.compile(function, backend="kerf")()
    assert all(map(torch.equal, results, function()))
    assert sum(len(c.externs) for c in kerf.compilations()) == 0


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_arange(dtype: torch.dtype) -> None:
    def function() -> list[torch.Tensor]:
        ranges = [(0, 10, 1), (0, 1, 0.1), (1, -2, -0.4), (0.5, 7.5, 1), (5, 5, 1), (0.3, 0.9, 0.1)]
        return [torch.arange(*bounds, dtype=dtype) for bounds in ranges]

    assert all(map(torch.equal, torch.compile(function, backend="kerf")(), function()))


def test_ranges_of_sizes() -> None:
    """Floating ranges between sizes, and sizes that are rounded quotients."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h, w = x.shape
        parts = math.ceil(h / 3), math.floor(w / 4), math.ceil((h - w) / 5)
        steps = torch.arange(h, -w, -1.0), torch.arange(w, 0, -1, dtype=torch.bfloat16)
        return F.pad(x, (0, parts[0] * 3 - h, parts[1], 0)) * parts[2], *steps

    calls = [(torch.randn(8, 17),), (torch.randn(6, 5),)]
    compare(function, torch.randn(13, 9), dynamic=True, calls=calls)
    assert sum(len(c.externs) for c in kerf.compilations()) == 0
