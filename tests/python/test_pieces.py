"""Values in equal pieces: rotary embeddings of half rows, gated halves, gradients, beside whole values."""

import pytest
import torch
from compare import compare


def _turned(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def _embedded(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return x * cos + _turned(x) * sin


def _normed(x: torch.Tensor, w: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    x = w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
    return _embedded(x.transpose(1, 2), cos, sin)


def _launches(function, *inputs) -> int:
    from kerf import compile_for

    return len(compile_for(function, inputs, target="cuda").kernels)


@pytest.mark.parametrize("width", [2, 6, 32, 64, 66])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_rotary_embedding(dtype: torch.dtype, width: int) -> None:
    x = torch.randn(2, 5, 3, width, dtype=dtype).transpose(1, 2).requires_grad_()
    factors = [torch.randn(5, width, dtype=dtype, requires_grad=True) for _ in range(2)]
    compare(_embedded, x, *factors, train=True)


@pytest.mark.parametrize("width", [32, 128])
def test_a_norm_before_it(width: int) -> None:
    x = torch.randn(2, 7, 4, width, requires_grad=True)
    weight = torch.randn(width, requires_grad=True)
    compare(_normed, x, weight, torch.randn(7, width), torch.randn(7, width), train=True)


def test_it_is_one_kernel() -> None:
    x, factor = torch.randn(2, 4, 16, 64), torch.randn(16, 64)
    assert _launches(_embedded, x, factor, factor) == 1
    rows = torch.randn(2, 16, 4, 64)
    assert _launches(_normed, rows, torch.randn(64), factor, factor) == 1


def test_special_values_stay_in_their_half() -> None:
    x = torch.randn(8, 64)
    x[0, 3], x[1, 40], x[2, 5], x[3, 63] = torch.nan, torch.nan, torch.inf, -torch.inf
    x[4] = -0.0
    factors = [torch.ones(64), torch.ones(64)]
    compare(_embedded, x.requires_grad_(), *factors, train=True)

    def folded(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = _turned(x.exp())
        return y.amax(-1), y.amin(-1), y.sum(-1), (y > 0).any(-1), y.argmax(-1)

    compare(folded, x.detach())


def test_sizes_that_change() -> None:
    def inputs(batch: int, rows: int) -> tuple[torch.Tensor, ...]:
        x = torch.randn(batch, rows, 64, requires_grad=True)
        return x, torch.randn(rows, 64), torch.randn(rows, 64)

    compare(_embedded, *inputs(3, 9), train=True, dynamic=True, calls=[inputs(1, 2), inputs(5, 17)])
    compare(_embedded, *inputs(0, 4))


def test_gated_halves_and_quarters() -> None:
    def gated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        a, b = torch.tanh(x * w).chunk(2, dim=-1)
        return torch.cat((a * torch.sigmoid(b), b - a), dim=-1) * w

    def quarters(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        a, b, c, d = (x * w).chunk(4, dim=1)
        return torch.cat((d, -a, b.exp(), c), dim=1).sin()

    compare(gated, torch.randn(6, 96, requires_grad=True), torch.randn(96), train=True)
    compare(quarters, torch.randn(3, 8, 40, requires_grad=True), torch.randn(8, 40), train=True)


def test_pieces_that_are_returned_or_read_whole() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        turned = _turned(x.cos())
        return turned, turned * 2, (turned + x) @ w, turned.cumsum(-1), turned.flip(-1) * x

    compare(function, torch.randn(6, 64, requires_grad=True), torch.randn(64, 5), train=True)
