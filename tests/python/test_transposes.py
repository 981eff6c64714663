"""Operands that run along different axes: whole tiles are transposed in registers, edges are gathered."""

import pytest
import torch

SIZES = [(16, 16), (64, 48), (37, 130), (17, 15), (8, 8), (3, 300), (1, 40), (0, 16)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool]


def _filled(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return (torch.randn(shape) * 3).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_of_every_size(dtype: torch.dtype) -> None:
    torch._dynamo.reset()

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y + x.t()

    for rows, columns in SIZES:
        compiled = torch.compile(function, backend="kerf", dynamic=False)
        x, y = _filled((rows, columns), dtype), _filled((columns, rows), dtype)
        assert torch.equal(compiled(x, y), function(x, y)), (rows, columns)


def test_special_values_pass_through() -> None:
    torch._dynamo.reset()
    x = torch.randn(40, 33)
    x[::3] = torch.nan
    x[1::3, ::2] = torch.inf
    x[2::3] = -0.0
    copied = torch.compile(lambda x: x.t().contiguous(), backend="kerf")(x)
    assert torch.equal(copied.view(torch.int32), x.t().contiguous().view(torch.int32))


def test_batches_offsets_and_steps() -> None:
    torch._dynamo.reset()

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        narrow = x[:, 1:, 2:].transpose(1, 2)
        return narrow * 2 + y, (x[:, ::2, ::2].permute(2, 0, 1) + 1).contiguous()

    x, y = torch.randn(3, 66, 50), torch.randn(3, 48, 65)
    results = torch.compile(function, backend="kerf")(x, y)
    for got, expected in zip(results, function(x, y), strict=True):
        assert torch.equal(got, expected) and got.stride() == expected.stride()


def test_two_transposed_operands_and_an_update_in_place() -> None:
    torch._dynamo.reset()

    def function(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        z.copy_(x.t() * y.t() + z)
        return z.sum(0)

    x, y, z = torch.randn(50, 70), torch.randn(50, 70), torch.randn(70, 50)
    expected = z.clone()
    function(x, y, expected)
    torch.compile(function, backend="kerf")(x, y, z)
    assert torch.equal(z, expected)


def test_dynamic_sizes() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, y: x.t() + y, backend="kerf", dynamic=True)
    for rows, columns in ((64, 32), (65, 33), (5, 200), (16, 17)):
        x, y = torch.randn(rows, columns), torch.randn(columns, rows)
        assert torch.equal(compiled(x, y), x.t() + y)
