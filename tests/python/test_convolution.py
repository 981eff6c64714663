"""Convolutions as products of matrices, and gradients of depthwise ones, against eager's convolution."""

import compare
import kerf
import pytest
import torch
import torch.nn.functional as F


def _randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()


def _externs() -> set[str]:
    return {extern.op for compilation in kerf.compilations() for extern in compilation.externs}


def _convolve(stride: int | tuple[int, int] = 1):
    return lambda x, weight, bias: torch.sin(F.conv2d(x, weight, bias, stride=stride))


_POINTS = {
    "plain": ((2, 8, 5, 7), 6),
    "one pixel": ((3, 8, 1, 1), 6),
    "one channel": ((2, 1, 4, 4), 6),
    "one result": ((2, 8, 4, 4), 1),
    "one image": ((1, 8, 4, 6), 3),
    "no image": ((0, 8, 4, 6), 3),
}


@pytest.mark.parametrize("shape, channels", _POINTS.values(), ids=_POINTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
def test_one_tap(shape: tuple[int, ...], channels: int, dtype: torch.dtype) -> None:
    x, weight = _randn(*shape, dtype=dtype), _randn(channels, shape[1], 1, 1, dtype=dtype, seed=1)
    compare.compare(_convolve(), x, weight, _randn(channels, dtype=dtype, seed=2), train=True)
    assert not [op for op in _externs() if "conv" in op]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no bias"])
def test_one_tap_with_channels_last(dtype: torch.dtype, has_bias: bool) -> None:
    x = _randn(2, 8, 5, 7, dtype=dtype).detach().to(memory_format=torch.channels_last).requires_grad_()
    weight = _randn(6, 8, 1, 1, dtype=dtype, seed=1)
    bias = _randn(6, dtype=dtype, seed=2) if has_bias else None
    compare.compare(_convolve(), x, weight, bias, train=True)
    assert not [op for op in _externs() if "conv" in op]


@pytest.mark.parametrize("window", [(4, 4), (2, 4)], ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["rows", "last"])
def test_patches(window: tuple[int, int], layout: torch.memory_format) -> None:
    x = _randn(2, 3, 8, 12).detach().to(memory_format=layout).requires_grad_()
    weight, bias = _randn(6, 3, *window, seed=1), _randn(6, seed=2)
    compare.compare(_convolve(window), x, weight, bias, train=True)
    assert not [op for op in _externs() if "conv" in op]


@pytest.mark.parametrize(
    "shape, window, stride",
    [((2, 3, 9, 12), 4, 4), ((2, 3, 8, 8), 1, 2), ((2, 3, 8, 8), 3, 1), ((2, 3, 8, 8), 2, 4)],
    ids=["cut off", "gaps", "overlap", "patches with gaps"],
)
def test_others_are_the_librarys(shape: tuple[int, ...], window: int, stride: int) -> None:
    x, weight = _randn(*shape), _randn(6, 3, window, window, seed=1)
    compare.compare(_convolve(stride), x, weight, None, train=True)
    assert "aten.convolution.default" in _externs()


def test_sizes_that_change() -> None:
    weight, bias = _randn(6, 8, 1, 1, seed=1), _randn(6, seed=2)
    shapes = [(2, 8, 5, 7), (3, 8, 4, 9), (1, 8, 1, 1)]
    calls = [(_randn(*shape, seed=i), weight, bias) for i, shape in enumerate(shapes)]
    compare.compare(_convolve(), *calls[0], train=True, dynamic=True, calls=calls)


def test_frozen_weight_and_image_without_gradient() -> None:
    x, weight = _randn(2, 8, 5, 7), _randn(6, 8, 1, 1, seed=1)
    compare.compare(_convolve(), x.detach(), weight, None, train=True)
    compare.compare(_convolve(), x, weight.detach(), None, train=True)


def test_infinities_stay_in_their_pixel() -> None:
    x = _randn(1, 4, 3, 3).detach()
    x[0, 1, 0, 0], x[0, 2, 1, 1], x[0, 0, 2, 2] = float("inf"), float("-inf"), float("nan")
    compare.compare(lambda x, w: F.conv2d(x, w), x, _randn(5, 4, 1, 1, seed=1).detach())


def _depthwise(stride: int, padding: int, dilation: int):
    return lambda x, w, b: torch.sin(F.conv2d(x, w, b, stride, padding, dilation, w.shape[0]))


_DEPTHWISE = {
    "plain": ((2, 16, 7, 9), (5, 5), 1, 2, 1),
    "no padding": ((2, 16, 7, 9), (5, 5), 1, 0, 1),
    "stride": ((3, 16, 10, 9), (5, 5), 2, 2, 1),
    "dilation": ((2, 16, 11, 9), (4, 5), 1, 3, 2),
    "oblong": ((2, 16, 7, 9), (7, 2), 1, 3, 1),
    "one row": ((2, 16, 1, 3), (5, 5), 1, 2, 1),
    "two channels": ((2, 2, 6, 6), (5, 5), 1, 2, 1),
    "image at a time": ((1, 33, 8, 8), (5, 5), 1, 4, 1),
    "no image": ((0, 16, 7, 9), (5, 5), 1, 2, 1),
    "long folds": ((4, 8, 40, 41), (5, 5), 1, 2, 1),
}


@pytest.mark.parametrize("shape, window, stride, padding, dilation", _DEPTHWISE.values(), ids=_DEPTHWISE)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["rows", "last"])
def test_depthwise(shape, window, stride, padding, dilation, layout) -> None:
    x = _randn(*shape).detach().to(memory_format=layout).requires_grad_()
    weight, bias = _randn(shape[1], 1, *window, seed=1), _randn(shape[1], seed=2)
    compare.compare(_depthwise(stride, padding, dilation), x, weight, bias, train=True)
    assert "[true, false, false]" in "".join(compilation.graph_text for compilation in kerf.compilations())


def test_depthwise_with_frozen_parts() -> None:
    x, weight, bias = _randn(2, 16, 7, 9), _randn(16, 1, 5, 5, seed=1), _randn(16, seed=2)
    compare.compare(_depthwise(1, 2, 1), x.detach(), weight, bias, train=True)
    assert "aten.convolution_backward.default" not in _externs()
    compare.compare(_depthwise(1, 2, 1), x, weight, None, train=True)
    compare.compare(_depthwise(1, 2, 1), x, weight.detach(), bias, train=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=["bf16", "f64"])
def test_depthwise_of_other_dtypes(dtype: torch.dtype) -> None:
    x, weight = _randn(2, 16, 7, 9, dtype=dtype), _randn(16, 1, 5, 5, dtype=dtype, seed=1)
    compare.compare(_depthwise(1, 2, 1), x, weight, None, train=True)


def test_depthwise_with_sizes_that_change() -> None:
    weight, bias = _randn(8, 1, 5, 5, seed=1), _randn(8, seed=2)
    shapes = [(2, 8, 5, 7), (3, 8, 4, 9), (1, 8, 12, 6)]
    calls = [(_randn(*shape, seed=i), weight, bias) for i, shape in enumerate(shapes)]
    compare.compare(_depthwise(1, 2, 1), *calls[0], train=True, dynamic=True, calls=calls)


def test_depthwise_with_infinite_gradients_at_the_edge() -> None:
    x, weight = _randn(1, 8, 6, 6), _randn(8, 1, 5, 5, seed=1)
    grad = torch.ones(1, 8, 6, 6)
    grad[0, 0, 0, 0], grad[0, 3, 5, 2] = float("inf"), float("nan")

    def gradient(convolve) -> torch.Tensor:
        return torch.autograd.grad(convolve(x, weight, None), weight, grad)[0]

    got = gradient(torch.compile(lambda x, w, b: F.conv2d(x, w, b, 1, 2, 1, 8), backend="kerf"))
    finite = got[0, 0].isfinite()  # places of the window that lie outside of the image at its first pixel
    assert finite[:2].all() and finite[:, :2].all() and not finite[2:, 2:].any()
    assert got[3, 0, 3:].isfinite().all() and got[3, 0, :3].isnan().all()
