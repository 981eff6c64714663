"""Batch norm, pooling and resampling against eager: results, gradients, running statistics and geometry."""

import copy

import compare
import kerf
import pytest
import torch
import torch.nn.functional as F
from torch import nn


def _randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()


def _laid_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same numbers contiguous, with channels last, or with the last two dimensions exchanged."""
    x = x.detach()
    if layout == "channels_last":
        x = x.to(memory_format=torch.channels_last)
    elif layout == "transposed":
        x = x.transpose(-1, -2).contiguous().transpose(-1, -2)
    return x.requires_grad_()


def _assert_compiled(*names: str) -> None:
    """No call whose name has one of `names` in it is a library call in the graphs compiled last."""
    externs = [extern.op for compilation in kerf.compilations() for extern in compilation.externs]
    assert not [op for op in externs if any(name in op for name in names)]


class _Normed(nn.Module):
    """A batch norm whose gradient is not constant: that of a sum would be zero."""

    def __init__(self, channels: int, rank: int = 4, **kwargs) -> None:
        super().__init__()
        kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[rank]
        self.norm = kind(channels, **kwargs)
        generator = torch.Generator().manual_seed(1)
        for parameter in self.norm.parameters():
            parameter.data.normal_(generator=generator)
        if self.norm.running_var is not None:
            self.norm.running_mean.normal_(generator=generator)
            self.norm.running_var.uniform_(0.5, 2.0, generator=generator)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.norm(x))


class _Contiguous(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.contiguous()


_SHAPES = [(4, 3), (7, 5, 11), (2, 6, 8, 8), (1, 3, 13, 17), (3, 1, 1, 2), (2, 4, 3, 2, 5), (64, 8, 1, 1)]


@pytest.mark.parametrize("shape", _SHAPES, ids=str)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_norm(shape: tuple[int, ...], mode: str) -> None:
    module = _Normed(shape[1], len(shape)).train(mode == "train")
    compare.compare(module, _randn(*shape), train=True)
    _assert_compiled("batch_norm")


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "transposed"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_norm_layouts(layout: str, mode: str) -> None:
    """Traced strides of a transposed input are not eager's: its result is made contiguous first."""
    module = _Normed(16).train(mode == "train")
    if layout == "transposed":
        module = nn.Sequential(module, _Contiguous())
    compare.compare(module, _laid_out(_randn(2, 16, 9, 7), layout), train=True)
    _assert_compiled("batch_norm")


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("track", [True, False])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_norm_without(affine: bool, track: bool, mode: str) -> None:
    module = _Normed(6, affine=affine, track_running_stats=track, momentum=0.3, eps=1e-3)
    compare.compare(module.train(mode == "train"), _randn(4, 6, 5, 5), train=True)
    _assert_compiled("batch_norm")


@pytest.mark.parametrize("parameters", [torch.float32, None])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_norm_dtypes(dtype: torch.dtype, parameters: torch.dtype | None, mode: str) -> None:
    """Half inputs with their own dtype of parameters, and with f32 parameters as under autocast."""
    if dtype == torch.float64 and parameters is not None:
        pytest.skip("eager refuses it")
    module = _Normed(8).to(parameters or dtype).train(mode == "train")
    compare.compare(module, _randn(4, 8, 6, 6, dtype=dtype), train=True)
    _assert_compiled("batch_norm")


def test_batch_norm_far_from_zero() -> None:
    """The variance of numbers far from zero is not a difference of large numbers."""
    x = (_randn(8, 4, 16, 16).detach() * 1e-2 + 100).requires_grad_()
    compare.compare(_Normed(4), x, train=True)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_norm_of_what_is_not_finite(mode: str) -> None:
    x = _randn(3, 4, 2, 3).detach()
    x[0, 0, 0, 0], x[1, 1, 1, 1], x[2, 2, 0, 0] = float("inf"), float("nan"), -float("inf")
    compare.compare(_Normed(4).train(mode == "train"), x.requires_grad_(), train=True)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_norm_of_no_elements(mode: str) -> None:
    module = _Normed(4).train(mode == "train")
    compare.compare(module, torch.empty(0, 4, 3, 3, requires_grad=True), train=True)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_norm_of_dynamic_sizes(mode: str) -> None:
    module = _Normed(6).train(mode == "train")
    calls = [(_randn(5, 6, 7, 7),), (_randn(2, 6, 4, 9),)]
    compare.compare(module, _randn(3, 6, 5, 5), train=True, dynamic=True, calls=calls)
    _assert_compiled("batch_norm")


def test_frozen_parameters() -> None:
    """Gradients of the input alone, and of the parameters alone."""
    module = _Normed(4)
    module.norm.requires_grad_(False)
    compare.compare(module, _randn(3, 4, 5, 5), train=True)
    compare.compare(_Normed(4), _randn(3, 4, 5, 5).detach(), train=True)
    _assert_compiled("batch_norm")


_GROUPED = [(2, 6, 5, 5), (3, 6), (1, 6, 7), (2, 12, 1, 3, 2), (0, 6, 4)]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", _GROUPED, ids=str)
def test_group_norm(shape: tuple[int, ...], affine: bool) -> None:
    module = nn.Sequential(nn.GroupNorm(3, shape[1], affine=affine), nn.Tanh())
    compare.compare(module, _randn(*shape), train=True)
    _assert_compiled("group_norm")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_group_norm_dtypes(dtype: torch.dtype, layout: str) -> None:
    module = nn.Sequential(nn.GroupNorm(2, 4), nn.Tanh()).to(dtype)
    compare.compare(module, _laid_out(_randn(2, 4, 5, 3, dtype=dtype), layout), train=True)
    if dtype != torch.float64:
        compare.compare(module.float(), _randn(2, 4, 5, 3, dtype=dtype), train=True)
    _assert_compiled("group_norm")


# Pools. `_weighted` gives every element of a result a gradient of its own.


def _weighted(result: torch.Tensor) -> torch.Tensor:
    numbers = torch.arange(result.numel(), dtype=torch.float64).reshape(result.shape)
    return result * torch.sin(numbers).to(result.dtype)


_WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 0)},
    {"kernel_size": 2, "stride": 3},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 5, "stride": 3, "padding": 2, "ceil_mode": True},
    {"kernel_size": (7, 6)},
]
_DILATED = [
    {"kernel_size": 2, "dilation": 2},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1, "dilation": (1, 2)},
    {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2, "ceil_mode": True},
]
_COUNTS = [{"count_include_pad": False}, {"divisor_override": 5}]
_PLANES = [(2, 3, 7, 6), (3, 11, 13), (1, 1, 8, 8), (0, 2, 7, 7)]


@pytest.mark.parametrize("options", _WINDOWS + _DILATED, ids=str)
@pytest.mark.parametrize("shape", _PLANES, ids=str)
def test_max_pool(shape: tuple[int, ...], options: dict) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, positions = F.max_pool2d(x, return_indices=True, **options)
        return _weighted(values), positions

    compare.compare(function, _randn(*shape), train=True)
    _assert_compiled("max_pool")


@pytest.mark.parametrize("options", _WINDOWS, ids=str)
@pytest.mark.parametrize("counts", [{}, *_COUNTS], ids=str)
def test_avg_pool(options: dict, counts: dict) -> None:
    for shape in _PLANES:
        compare.compare(lambda x: _weighted(F.avg_pool2d(x, **options, **counts)), _randn(*shape), train=True)
    _assert_compiled("avg_pool")


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "transposed"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_pool_layouts(layout: str, dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        largest, average = F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1)
        return _weighted(largest), _weighted(average), _weighted(F.adaptive_avg_pool2d(x, (3, 2)))

    compare.compare(function, _laid_out(_randn(2, 8, 9, 7, dtype=dtype), layout), train=True)
    _assert_compiled("pool")


@pytest.mark.parametrize("pool", [F.max_pool1d, F.avg_pool1d, F.max_pool3d, F.avg_pool3d])
def test_pool_of_other_dimensions(pool) -> None:
    shape = (2, 3, 9) if "1d" in pool.__name__ else (2, 3, 5, 6, 7)
    compare.compare(lambda x: _weighted(pool(x, 3, 2, 1)), _randn(*shape), train=True)
    compare.compare(lambda x: _weighted(pool(x, 2, 1, 1, ceil_mode=True)), _randn(*shape[1:]), train=True)
    _assert_compiled("pool")


def test_max_pool_of_ties_and_what_is_not_finite() -> None:
    """The first of equals; the last NaN of a window; windows of -inf, also beside padding; signs of zeros."""
    inf, nan = float("inf"), float("nan")
    x = torch.tensor(
        [[-inf, -inf, 1, 1, nan, 2], [-inf, -inf, 1, 1, 3, nan], [0.0, -0.0, inf, inf, -inf, nan]]
    ).repeat(2, 2)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x[None]
        pools = [
            F.max_pool2d(x, k, s, p, return_indices=True) for k, s, p in ((2, 2, 0), (3, 2, 1), (2, 1, 1))
        ]
        return tuple(result for pool in pools for result in pool)

    compare.compare(function, x.requires_grad_(), train=True)
    _assert_compiled("max_pool")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_pool_of_integers(dtype: torch.dtype) -> None:
    x = torch.randint(0, 100, (2, 3, 6, 7), generator=torch.Generator().manual_seed(0)).to(dtype)
    compare.compare(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    if dtype == torch.int64:
        compare.compare(lambda x: F.avg_pool2d(x - 50, 3, 2, 1), x)
    _assert_compiled("pool")


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 9, 10, (1, 5), (6, 3), (20, 1), (None, 2)], ids=str)
def test_adaptive_avg_pool(size) -> None:
    for shape in [(2, 3, 7, 10), (3, 6, 9), (0, 2, 5, 5)]:
        compare.compare(lambda x: _weighted(F.adaptive_avg_pool2d(x, size)), _randn(*shape), train=True)
    _assert_compiled("pool")


def test_adaptive_avg_pool_of_other_dimensions() -> None:
    compare.compare(lambda x: _weighted(F.adaptive_avg_pool1d(x, 4)), _randn(2, 3, 9), train=True)
    x = _randn(2, 3, 5, 6, 7)
    compare.compare(lambda x: _weighted(F.adaptive_avg_pool3d(x, (2, 3, 4))), x, train=True)
    _assert_compiled("pool")


def test_pool_of_dynamic_sizes() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pools = F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
        return *(_weighted(pool) for pool in pools), _weighted(F.adaptive_avg_pool2d(x, 3))

    calls = [(_randn(3, 2, 10, 5),), (_randn(2, 5, 7, 7),)]
    compare.compare(function, _randn(2, 3, 9, 11), train=True, dynamic=True, calls=calls)
    _assert_compiled("pool")


# Resampling and padding. Positions are compared with eager's by reading distinct numbers.


_MODES = ["nearest", "nearest-exact"]
_FACTORS = [0.3, 0.5, 0.7, 1.0, 1.1, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 3.7]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 10, 16, 29])
@pytest.mark.parametrize("mode", _MODES)
def test_nearest_positions(mode: str, size: int) -> None:
    """To every small size, and by factors."""

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        by_size = [F.interpolate(x, size=out, mode=mode) for out in [*range(1, 24), 37, 48, 64]]
        usable = [factor for factor in _FACTORS if int(size * factor) >= 1]
        return by_size + [F.interpolate(x, scale_factor=factor, mode=mode) for factor in usable]

    x = torch.arange(float(size)).reshape(1, 1, size)
    compare.compare(function, x)
    compare.compare(lambda x: [_weighted(y) for y in function(x)], x.requires_grad_(), train=True)
    _assert_compiled("upsample")


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "transposed"])
def test_nearest(mode: str, dtype: torch.dtype, layout: str) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        sizes = [(6, 10), (12, 20), (18, 5), (7, 9), (1, 1)]
        return [_weighted(F.interpolate(x, size=size, mode=mode)) for size in sizes]

    compare.compare(function, _laid_out(_randn(2, 3, 6, 10, dtype=dtype), layout), train=True)
    _assert_compiled("upsample")


@pytest.mark.parametrize("mode", _MODES)
def test_nearest_of_other_dimensions(mode: str) -> None:
    for shape in [(2, 3, 7), (2, 3, 3, 4, 5)]:
        compare.compare(
            lambda x: _weighted(F.interpolate(x, scale_factor=1.6, mode=mode)), _randn(*shape), train=True
        )
    _assert_compiled("upsample")


@pytest.mark.parametrize("mode", _MODES)
def test_nearest_of_dynamic_sizes(mode: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        double = F.interpolate(x, size=(2 * x.shape[2], 2 * x.shape[3]), mode=mode)
        return _weighted(double), _weighted(F.interpolate(x, scale_factor=1.3, mode=mode))

    calls = [(_randn(2, 3, 4, 9),), (_randn(1, 3, 10, 6),)]
    compare.compare(function, _randn(2, 3, 5, 7), train=True, dynamic=True, calls=calls)
    _assert_compiled("upsample")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_interpolation(mode: str, align_corners: bool) -> None:
    """Arrives in pieces; the positions are floating-point, and continuous."""
    options = {"mode": mode, "align_corners": align_corners}

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        results = [
            F.interpolate(x, size=size, **options) for size in [(6, 10), (12, 20), (7, 9), (1, 1), (17, 3)]
        ]
        return [_weighted(y) for y in [*results, F.interpolate(x, scale_factor=1.7, **options)]]

    compare.compare(function, _randn(2, 3, 6, 10), train=True)
    _assert_compiled("upsample", "index")


_PADDED = [
    ((2, 3, 6, 7), (1, 2, 3, 0), torch.float32),
    ((3, 5), (2, 3), torch.float32),
    ((2, 2, 4, 5), (-1, 2, 1, -2), torch.float32),
    ((1, 2, 3, 4, 5), (1, 1, 2, 0, 1, 1), torch.bfloat16),
]


@pytest.mark.parametrize("case", _PADDED, ids=str)
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_from_the_operand(mode: str, case: tuple) -> None:
    shape, pads, dtype = case
    compare.compare(lambda x: _weighted(F.pad(x, pads, mode=mode)), _randn(*shape, dtype=dtype), train=True)
    _assert_compiled("pad", "slice")


def test_slices_of_gradients() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return _weighted(x[:, 1:-2]), _weighted(x[-2]), _weighted(x[:, -3:]), _weighted(x[:, :, 1])

    compare.compare(function, _randn(3, 7, 4), train=True)
    compare.compare(function, _randn(3, 7, 4), train=True, dynamic=True, calls=[(_randn(4, 6, 5),)])
    _assert_compiled("slice", "select")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.bool])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cumulative(dtype: torch.dtype, dim: int) -> None:
    x = (_randn(3, 17, 5).detach() * 2).to(dtype)
    compare.compare(lambda x: x.cumprod(dim), x)
    compare.compare(lambda x: x.cumsum(dim), x[:0].clone())
    train = dtype.is_floating_point
    compare.compare(lambda x: _weighted(x.cumsum(dim)), x.requires_grad_(train), train=train)
    _assert_compiled("cum")


def test_cumulative_of_one_number() -> None:
    compare.compare(lambda x: x.cumsum(0), torch.tensor(2.5))


class _RmsNorm(nn.Module):
    """As transformers has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 2.0, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("norm", [nn.RMSNorm(64), _RmsNorm()], ids=["torch", "transformers"])
def test_rms_norm_is_one_kernel(norm: nn.Module, dtype: torch.dtype) -> None:
    """It comes in pieces; docs/decisions/0027 rests on what becomes of them: one kernel, and in the backward
    pass one more that joins the parts of column sums. Only the input and a number a row are kept.
    """
    kerf.reset()
    x = _randn(256, 64, dtype=dtype)
    compare.compare(copy.deepcopy(norm).to(dtype), x, train=True)
    assert [c.kernels for c in kerf.compilations()] == [1, 2]
    assert [p.kept_bytes for p in kerf.partitions()] == [256 * 64 * dtype.itemsize + 256 * 4]
