"""Adaptive maxima, windows as columns and back: results, positions, gradients and geometry against eager."""

import compare
import kerf
import pytest
import torch
import torch.nn.functional as F


def _randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()


def _weighted(result: torch.Tensor) -> torch.Tensor:
    """Every element of a result with a gradient of its own."""
    numbers = torch.arange(result.numel(), dtype=torch.float64).reshape(result.shape)
    return result * torch.sin(numbers).to(result.dtype)


def _assert_compiled(*names: str) -> None:
    externs = [extern.op for compilation in kerf.compilations() for extern in compilation.externs]
    assert not [op for op in externs if any(name in op for name in names)]


def _largest(pool, x: torch.Tensor, size) -> tuple[torch.Tensor, torch.Tensor]:
    values, positions = pool(x, size, return_indices=True)
    return _weighted(values), positions


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 9, (1, 5), (6, 3), (20, 1), (None, 2)], ids=str)
def test_adaptive_max_pool(size) -> None:
    for shape in [(2, 3, 7, 10), (3, 6, 9), (0, 2, 5, 5), (1, 1, 1, 1)]:
        compare.compare(lambda x: _largest(F.adaptive_max_pool2d, x, size), _randn(*shape), train=True)
    _assert_compiled("pool")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("channels_last", [False, True])
def test_adaptive_max_pool_dtypes(dtype: torch.dtype, channels_last: bool) -> None:
    x = _randn(2, 4, 7, 6, dtype=dtype).detach()
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    for size in (2, 3):
        compare.compare(
            lambda x, size=size: _largest(F.adaptive_max_pool2d, x, size),
            x.clone().requires_grad_(),
            train=True,
        )
    _assert_compiled("pool")


def test_adaptive_max_pool_of_other_dimensions() -> None:
    compare.compare(lambda x: _largest(F.adaptive_max_pool1d, x, 4), _randn(2, 3, 9), train=True)
    compare.compare(lambda x: _largest(F.adaptive_max_pool1d, x, 1), _randn(3, 9), train=True)
    for size in ((2, 3, 4), 1):
        compare.compare(
            lambda x, n=size: _largest(F.adaptive_max_pool3d, x, n), _randn(2, 3, 5, 6, 7), train=True
        )
    _assert_compiled("pool")


def test_adaptive_max_pool_of_ties_and_what_is_not_finite() -> None:
    """The first of equals, the last NaN of a part; parts of -inf beside parts that are not."""
    inf, nan = float("inf"), float("nan")
    rows = [[-inf, -inf, 1, 1, nan], [-inf, -inf, 1, 1, 3], [0.0, -0.0, inf, inf, nan]]
    x = torch.tensor([*rows, [2, 2, -inf, -inf, -inf], [nan, nan, 0, -inf, -inf]])
    sizes = [1, 2, 3, 4, 5]
    compare.compare(
        lambda x: [_largest(F.adaptive_max_pool2d, x, size) for size in sizes],
        x[None].requires_grad_(),
        train=True,
    )
    _assert_compiled("pool")


def test_adaptive_max_pool_of_dynamic_sizes() -> None:
    def function(x: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [_largest(F.adaptive_max_pool2d, x, size) for size in (1, 3)]

    calls = [(_randn(3, 2, 10, 5),), (_randn(2, 5, 7, 7),)]
    compare.compare(function, _randn(2, 3, 9, 11), train=True, dynamic=True, calls=calls)
    _assert_compiled("pool")


_COLUMNS = [
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)},
    {"kernel_size": 3, "dilation": 2, "padding": 2},
    {"kernel_size": 2, "stride": 3},
    {"kernel_size": (5, 4), "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "dilation": (2, 1), "padding": 1},
]


@pytest.mark.parametrize("options", _COLUMNS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_columns_of_windows(options: dict, dtype: torch.dtype) -> None:
    """F.unfold and its gradient, which is F.fold."""
    for shape in [(2, 3, 7, 10), (3, 9, 8)]:
        compare.compare(lambda x: _weighted(F.unfold(x, **options)), _randn(*shape, dtype=dtype), train=True)
    _assert_compiled("im2col")


@pytest.mark.parametrize("options", _COLUMNS, ids=str)
def test_windows_from_columns(options: dict) -> None:
    for size in [(7, 10), (9, 8)]:
        columns = F.unfold(_randn(2, 3, *size), **options).detach()

        def function(x: torch.Tensor, size=size) -> tuple[torch.Tensor, torch.Tensor]:
            folded = F.fold(x, size, **options)
            return _weighted(folded), folded[0]

        compare.compare(function, columns.requires_grad_(), train=True)
    if options.get("dilation") != (2, 1):
        _assert_compiled("col2im")


def test_windows_of_zeros_and_what_is_not_finite() -> None:
    x = torch.tensor([[-0.0, float("inf"), 1.0, -0.0], [-0.0, float("nan"), -float("inf"), 2.0]])
    compare.compare(lambda x: F.unfold(x[None], (1, 2), padding=1), x[:, None])
    compare.compare(lambda x: F.fold(x, (2, 2), (1, 2), stride=(1, 1)), x[:, :2])
    compare.compare(lambda x: F.fold(x, (2, 2), 1), x[:1])


def test_columns_of_dynamic_sizes() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        columns = F.unfold(x, 3, padding=1, stride=2)
        return _weighted(columns), _weighted(F.fold(columns, x.shape[2:], 3, padding=1, stride=2))

    calls = [(_randn(3, 4, 10, 5),), (_randn(2, 5, 7, 7),)]
    compare.compare(function, _randn(2, 3, 9, 11), train=True, dynamic=True, calls=calls)
    _assert_compiled("im2col", "col2im")


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("window", [(2, 2), (3, 1), (4, 2), (2, 3), (5, 2), (1, 1)], ids=str)
def test_windows_along_a_dimension(window: tuple[int, int], dim: int) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        x = _randn(7, 6, 9, dtype=dtype)
        compare.compare(lambda x: _weighted(x.unfold(dim, *window)), x, train=True)
    x, calls = _randn(7, 6, 9), [(_randn(8, 7, 10),)]
    compare.compare(lambda x: _weighted(x.unfold(dim, *window)), x, train=True, dynamic=True, calls=calls)
    _assert_compiled("unfold")
