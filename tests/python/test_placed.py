"""Values put into parts of others and rolls, against eager."""

from collections.abc import Callable

import compare
import kerf
import pytest
import torch

_DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool]


def _values(shape: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64) * 4
    return x > 0 if dtype == torch.bool else x.to(dtype)


def _assert_compiled(*names: str) -> None:
    externs = [extern.op for compilation in kerf.compilations() for extern in compilation.externs]
    assert not [op for op in externs if any(name in op for name in names)], externs


def _weighted(x: torch.Tensor) -> torch.Tensor:
    """With a gradient that differs from element to element."""
    return x * (torch.arange(x.numel()) % 5 + 1).to(x.dtype).reshape(x.shape)


def _same(function: Callable, *args: torch.Tensor, dynamic: bool = False) -> None:
    """What only moves values gives eager's bits."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="kerf", dynamic=dynamic)
    expected, actual = function(*args), compiled(*args)
    assert actual.dtype == expected.dtype and actual.stride() == expected.stride()
    assert torch.equal(actual.nan_to_num(7), expected.nan_to_num(7))


_SCATTERS = {
    "slice": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 9, 3), (4, 3)),
    "slice_negative": (lambda x, y: torch.slice_scatter(x, y, 1, -4), (4, 4)),
    "slice_empty": (lambda x, y: torch.slice_scatter(x, y, 1, 9, 3), (4, 0)),
    "select": (lambda x, y: torch.select_scatter(x, y, 0, -1), (10,)),
    "select_inner": (lambda x, y: torch.select_scatter(x, y, 1, 3), (4,)),
    "diagonal": (lambda x, y: torch.diagonal_scatter(x, y, 2), (4,)),
    "diagonal_below": (lambda x, y: torch.diagonal_scatter(x, y, -2), (2,)),
    "diagonal_turned": (lambda x, y: torch.diagonal_scatter(x, y, 1, 1, 0), (3,)),
    "diagonal_empty": (lambda x, y: torch.diagonal_scatter(x, y, 10), (0,)),
    "as_strided": (lambda x, y: torch.as_strided_scatter(x * 1, y, (3, 2), (7, 2), 5), (3, 2)),
    "as_strided_one": (lambda x, y: torch.as_strided_scatter(x * 1, y, (), (), 3), ()),
}


@pytest.mark.parametrize("name", _SCATTERS)
def test_scatters_of_views(name: str) -> None:
    function, shape = _SCATTERS[name]
    for dtype in _DTYPES:
        if dtype == torch.bool and name.startswith("as_strided"):
            continue
        x, y = _values((4, 10), dtype), _values(shape, dtype, 1)
        _same(function, x, y)
        turned = _values((10, 4), dtype).t()
        if not name.startswith("as_strided"):
            _same(function, turned, y)
    _assert_compiled("scatter")
    x, y = _values((4, 10)).requires_grad_(), _values(shape, seed=1).requires_grad_()
    compare.compare(lambda x, y: _weighted(function(x, y)), x, y, train=True)


def test_scatters_keep_what_is_not_finite() -> None:
    x = torch.full((4, 10), float("nan"))
    y = torch.tensor([float("inf"), -0.0, float("nan"), 1.0])
    _same(lambda x, y: torch.diagonal_scatter(x, y, 1), x, y)
    _same(lambda x, y: torch.select_scatter(x, y, 1, 2), x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_gradients_of_views(dtype: torch.dtype) -> None:
    views: list[Callable] = [
        lambda x: x[:, ::2],
        lambda x: x[1::3, 2:9:4],
        lambda x: torch.diagonal(x, 1, 0, 1),
        lambda x: torch.diagonal(x, -2, 1, 0),
        lambda x: torch.as_strided(x * 2, (3, 2), (7, 2), 5),
    ]
    for view in views:
        compare.compare(
            lambda x, view=view: _weighted(view(x)), _values((7, 11), dtype).requires_grad_(), train=True
        )
    _assert_compiled("backward", "as_strided")


def test_placed_with_dynamic_sizes() -> None:
    for rows in (4, 7, 1):
        x, y = _values((rows, 10)), _values((rows, 3), seed=1)
        _same(lambda x, y: torch.slice_scatter(x, y, 1, 1, 9, 3), x, y, dynamic=True)
        _same(lambda x, y: torch.select_scatter(x, y[:, 0], 1, 2), x, y, dynamic=True)
    compiled = torch.compile(lambda x: _weighted(x[:, 1::2]).sum(), backend="kerf", dynamic=True)
    for columns in (9, 14):
        x = _values((3, columns)).requires_grad_()
        z = x.detach().clone().requires_grad_()
        compiled(x).backward()
        _weighted(z[:, 1::2]).sum().backward()
        assert torch.equal(x.grad, z.grad)


@pytest.mark.parametrize(
    "shape", [(16, 100), (2, 5000), (40, 1000), (3, 7), (1,), (0, 3), (2, 6, 6, 8)], ids=str
)
def test_roll(shape: tuple[int, ...]) -> None:
    rolls: list[Callable] = [
        lambda x: torch.roll(x, 3) * 2,
        lambda x: torch.roll(x, -2, -1) * 2,
        lambda x: torch.roll(x, tuple(range(1, x.dim() + 1)), tuple(range(x.dim()))) * 2,
        lambda x: torch.roll(torch.roll(x, 1, 0), 5, -1) + x,
    ]
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        x = _values(shape, dtype)
        for roll in rolls:
            _same(roll, x)
            if x.dim() > 1:
                _same(roll, x.transpose(0, -1).contiguous().transpose(0, -1))
    if 0 not in shape:
        compare.compare(
            lambda x: _weighted(torch.roll(x, 3, -1)), _values(shape).requires_grad_(), train=True
        )


def test_roll_before_a_write() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        rolled = torch.roll(x, 3, 1)
        x.add_(1)
        return torch.roll(rolled, 2, 0) * 2

    x, y = _values((6, 9)), _values((6, 9))
    assert torch.equal(torch.compile(function, backend="kerf")(x), function(y))
    assert torch.equal(x, y)


@pytest.mark.parametrize("dynamic", [False, True])
def test_views_of_storages_that_are_results(dynamic: bool) -> None:
    """A value and its as_strided view share memory, whatever the sizes are."""

    def function(x: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        values = [x + n for n in range(4)]
        return [
            (values[0], values[0].as_strided((2, 2), (1, 2), 1)),
            (values[1], values[1].as_strided((x.shape[0] - 1, x.shape[1]), (x.shape[1], 1), x.shape[1])),
            (values[2], values[2].as_strided((x.numel() - 2, 3), (1, 1))),
            (values[3], values[3].t().as_strided((x.shape[1], 2), (1, x.shape[1]))),
        ]

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="kerf", dynamic=dynamic)
    for shape in ((4, 5), (6, 7), (9, 4)):
        for value, view in compiled(torch.zeros(shape)):
            before = view.clone()
            value.add_(1)
            assert torch.equal(view, before + 1)
    _assert_compiled("as_strided")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "write",
    [lambda t: t.diagonal().fill_(0.5), lambda t: t.diagonal(0, 1, 2).mul_(2), lambda t: t[0].zero_()],
)
def test_views_of_what_was_written_in_part_share_its_memory(write, dtype):
    def views(x):
        t = x.sin()
        write(t)
        return t[0], t.diagonal(), t.mT

    x = torch.randn(4, 5, 6).to(dtype)
    with torch.no_grad():
        got, expected = torch.compile(views, backend="kerf")(x), views(x)
    assert len({view.untyped_storage().data_ptr() for view in got}) == 1
    for view, other in zip(got, expected, strict=True):
        assert (view.stride(), view.storage_offset()) == (other.stride(), other.storage_offset())
        torch.testing.assert_close(view, other)
