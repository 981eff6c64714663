"""scatter_reduce in all its modes, with and without what is there before."""

import kerf
import pytest
import torch
from compare import compare

MODES = ["sum", "prod", "mean", "amax", "amin"]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8])
def test_scatter_reduce(dtype: torch.dtype, mode: str, include_self: bool) -> None:
    """Several updates of one element, none of others; a source larger than the index."""
    torch.manual_seed(0)
    data, source = ((torch.randn(shape) * 4 + 8).to(dtype) for shape in ((4, 6), (5, 7)))
    index = torch.randint(0, 4, (5, 6))
    index[:, 2], index[:, 3] = 1, torch.arange(5) % 4
    for dim in (0, 1):
        kerf.reset()
        turned = (data, index, source) if dim == 0 else (data.mT, index.mT, source.mT)
        compare(
            lambda x, i, s, dim=dim: x.scatter_reduce(dim, i, s, mode, include_self=include_self), *turned
        )
        assert not any(record.externs for record in kerf.compilations())
    compare(
        lambda x, i, s: x.scatter_reduce(0, i, s, mode, include_self=include_self), data, index[:0], source
    )


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_scatter_reduce_of_what_is_not_finite(mode: str, include_self: bool) -> None:
    inf, nan = float("inf"), float("nan")
    data = torch.tensor([1.0, nan, -inf, inf, 2.0, 0.0])
    source = torch.tensor([nan, 1.0, inf, -inf, 3.0, -inf, 5.0, -0.0])
    index = torch.tensor([0, 1, 2, 2, 3, 4, 5, 5])
    compare(lambda x, i, s: x.scatter_reduce(0, i, s, mode, include_self=include_self), data, index, source)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_scatter_reduce(mode: str) -> None:
    torch.manual_seed(0)
    data, source = torch.randn(4, 6, requires_grad=True), torch.randn(5, 6, requires_grad=True)
    for include_self in (True, False):
        compare(
            lambda x, i, s, self=include_self: x.scatter_reduce(0, i, s, mode, include_self=self).sin(),
            data,
            torch.randint(0, 4, (5, 6)),
            source,
            train=True,
            dynamic=True,
        )


def test_counts_of_parts() -> None:
    x = torch.cat([torch.randint(0, 8, (100,)).float(), torch.randn(50) * 6])
    x = torch.cat([x, torch.tensor([float("nan"), float("inf"), -float("inf"), 7.0, 0.0, -0.0])])

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.histc(x, 8, 0, 7), torch.histc(x, 5, -3.3, 2.7), torch.histc(x.double(), 17, -1, 1)]

    kerf.reset()
    compare(function, x)
    compare(function, x.view(2, -1), dynamic=True, calls=[(torch.randn(3, 5),), (torch.randn(0, 4),)])
    assert not any(record.externs for record in kerf.compilations())
