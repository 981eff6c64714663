"""Dtypes that are mixed, rare, or come back: what eager's kernels make of them, not what tracing says."""

import pytest
import torch
import torch.nn.functional as F
from compare import compare


@pytest.mark.parametrize("first, second", [(torch.bfloat16, torch.float16), (torch.float16, torch.float32)])
def test_gradients_of_a_loss_of_mixed_dtypes(first: torch.dtype, second: torch.dtype) -> None:
    """The library's mse_loss_backward gives its first operand's dtype, tracing promises the common one."""
    x = torch.randn(3, 4).to(first).requires_grad_()
    y = torch.randn(3, 4).to(second).requires_grad_()
    compare(F.mse_loss, x, y, train=True)


def test_a_fold_of_one_half_is_memory_of_its_own() -> None:
    """It is computed in f32 and cast back, which changes nothing."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.prod(0, keepdim=True), x.float().to(x.dtype), x

    x = torch.tensor(1.5, dtype=torch.bfloat16)
    torch._dynamo.reset()
    results = torch.compile(function, backend="kerf")(x)
    assert len({result.data_ptr() for result in results}) == 3
    compare(function, x)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_resampling_bytes(mode: str, layout: torch.memory_format) -> None:
    """Eager has kernels in fixed point for them."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scaled = F.interpolate(x, scale_factor=1.7, mode=mode, align_corners=True)
        return F.interpolate(x, size=(5, 13), mode=mode), F.interpolate(x, scale_factor=2, mode=mode), scaled

    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (1, 3, 7, 8), generator=generator).to(torch.uint8)
    compare(function, x.contiguous(memory_format=layout))


def test_resampling_floats_by_the_same_operators() -> None:
    x = torch.randn(1, 2, 3, 4, requires_grad=True)
    compare(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), x, train=True)
    compare(lambda x: F.interpolate(x, size=(5, 6), mode="bicubic"), x, train=True)


def test_ranges_of_integers_with_floating_bounds() -> None:
    """Bounds and steps become integers first; only the length is computed with the floats."""
    compare(
        lambda: (
            torch.arange(0.5, 5, 1.5, dtype=torch.int64),
            torch.arange(-2.5, 3, 1.2, dtype=torch.int32),
            torch.arange(5.5, 0, -1.5, dtype=torch.int16),
            torch.arange(1e10 - 2, 1e10, dtype=torch.uint8),
        )
    )


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_quantised_tensors_run_as_torch_runs_them() -> None:
    compare(
        lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8).dequantize() + 1, torch.randn(4)
    )


@pytest.mark.parametrize("dim", [None, 1])
def test_sums_and_products_in_bool(dim: int | None) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        dims = () if dim is None else (dim,)
        return x.sum(*dims, dtype=torch.bool), x.prod(*dims, dtype=torch.bool)

    x = torch.tensor([[0.0, 0.5], [0.0, -0.0], [3.0, float("nan")]])
    compare(function, x, calls=[(torch.zeros(2, 2, dtype=torch.int64),), (torch.zeros(2, 0),)])


def test_no_share_of_a_bool() -> None:
    x, y = torch.tensor([True, False, False]), torch.tensor([[True], [False]])
    compare(lambda x, y: (torch.add(x, y, alpha=False), torch.add(x, y, alpha=True)), x, y)
