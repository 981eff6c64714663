"""Floats that are computed from sizes take part in kernels as values."""

import math

import kerf
import pytest
import torch
from compare import compare


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_floats_of_sizes(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h, w = x.shape
        products = x * (h**-0.5), x / math.sqrt(w), x + h * 0.37 - w / 3, x * x.new_ones(()).sum() * (h / w)
        filled = x.new_full((3,), h * 2.5), torch.full((), h / w), torch.full_like(x, w**0.5 * 0.1)
        return *products, *filled

    def of_shape(*shape: int) -> torch.Tensor:
        return (torch.randn(shape) * 4).to(dtype)

    kerf.reset()
    compare(function, of_shape(13, 9), dynamic=True, calls=[(of_shape(8, 17),), (of_shape(6, 5),)])
    assert sum(len(c.externs) for c in kerf.compilations()) == 0


def test_a_float_of_sizes_that_no_kernel_takes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=x.shape[0] / 7) + torch.full((), math.atan(x.shape[1] * 0.5))

    compare(function, torch.randn(13, 9), dynamic=True, calls=[(torch.randn(8, 17),)])


def test_sums_of_sizes_that_torch_has_found_equal() -> None:
    def function(x: torch.Tensor, sizes: list[int], y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        joined = torch.cat([part.sin() for part in x.split(sizes, 0)], 0)
        return joined * y, y + joined, torch.where(y > 0, y, joined)

    def call(*sizes: int) -> tuple[torch.Tensor, list[int], torch.Tensor]:
        return torch.randn(48, 32), list(sizes), torch.randn(48, 1)

    kerf.reset()
    compare(function, *call(10, 20, 18), calls=[call(12, 17, 19), call(5, 30, 13), call(0, 40, 8)])
    assert sum(len(c.externs) for c in kerf.compilations()) == 0


def test_sizes_that_are_fractions_of_others() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        larger = torch.nn.functional.interpolate(x, scale_factor=1.5, mode="bilinear")
        return larger, x.new_ones(int(x.shape[2] * 0.375)), x.new_ones(math.ceil(x.shape[3] * 2.25))

    kerf.reset()
    calls = [(torch.randn(1, 2, h, w),) for h, w in ((7, 5), (2, 16), (9, 3))]
    compare(function, torch.randn(1, 2, 6, 8), dynamic=True, calls=calls)
    assert sum(len(c.externs) for c in kerf.compilations()) == 0


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_gradients_of_resampling_to_sizes_that_change(mode: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        size = (y.shape[2] * 2, 3, y.shape[4] + 1)
        resample = torch.nn.functional.interpolate
        return resample(x, size=x.shape[2] + 4, mode=mode).sin(), resample(y, size=size, mode=mode).sin()

    def call(*sizes: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.randn(s, requires_grad=True) for s in ((2, 3, sizes[0]), (1, 2, *sizes)))

    compare(function, *call(9, 4, 5), train=True, dynamic=True, calls=[call(5, 6, 3), call(12, 2, 7)])
