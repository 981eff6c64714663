"""Batch norm, pooling and resampling against eager: results, gradients, running statistics and geometry."""

import compare
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import kerf


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
    module = _Normed(16).train(mode == "train")
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


def test_batch_norm_of_one_element() -> None:
    """A channel of one element: the unbiased variance is 0 / 0."""

    def function(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return torch.batch_norm(x, None, None, mean, variance, True, 0.1, 1e-5, False)

    compare.compare(function, _randn(1, 5).detach(), torch.zeros(5), torch.ones(5))
    _assert_compiled("batch_norm")


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
