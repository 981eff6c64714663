"""Gathers of few elements, which compute what they look up from what it is made of."""

import kerf
import pytest
import torch
import torch.nn.functional as F
from compare import compare

INF = float("inf")


def last() -> kerf.Compilation:
    return kerf.compilations()[-1]


def test_the_looked_up_value_is_never_written() -> None:
    x, target = torch.randn(512, 1000), torch.randint(0, 1000, (512,))
    compare(lambda x, t: F.cross_entropy(x, t), x, target)
    assert last().peak_bytes < x.nbytes / 10
    # Somebody else reads it.
    compare(lambda x, t: (F.log_softmax(x, 1), F.cross_entropy(x, t)), x, target)
    # Half of it is looked up.
    compare(lambda x, i: torch.gather(x.exp() + 1, 1, i), x, torch.randint(0, 1000, (512, 500)))
    assert last().peak_bytes >= x.nbytes


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(reduction: str) -> None:
    x = torch.randn(40, 33)
    x[3, 5], x[4], x[5, 7], x[6, 8] = -INF, -INF, INF, float("nan")
    target = torch.randint(0, 33, (40,))
    target[3], target[7:9] = 5, -100
    compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction), x, target)
    compare(lambda x, t: F.cross_entropy(x.bfloat16(), t, reduction=reduction), x[:3], target[:3])
    compare(lambda x, t: F.nll_loss(x.exp() - x, t, ignore_index=2, reduction=reduction), x, target.clamp(0))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_gathers(dim: int) -> None:
    x, m = torch.randn(24, 20, 20), torch.randn(20, 1)
    shape = [24, 20, 20]
    shape[dim] = 2
    index = torch.randint(0, 20, shape)
    compare(lambda x, m, i: torch.gather((x - m).exp(), dim, i), x, m, index)
    compare(lambda x, m, i: torch.gather((x - m).mT * 2, dim, i.mT), x, m, index)


def test_rows_by_index() -> None:
    table, index = torch.randn(300, 40), torch.tensor([[3, -1, 299], [0, -300, 7]])
    compare(lambda w, i: (w * 2 + w.sum(1, keepdim=True))[i], table, index)
    compare(lambda w, i: F.pad(w, (1, 2, 3, 0), value=5.0)[i], table, index)
    compare(lambda w, i: torch.cat([w, -w], 0)[i], table, index)
    compare(lambda w, i: w.flip(0).neg()[i, :3], table, index)
    compare(lambda w, i: w.half().exp().float()[i, i % 40], table, index)
    compare(lambda w, i: F.embedding(i % 300, w.sigmoid()), table, index)
    compare(lambda w, i: w.t().mul(3)[:, i], table, index)
    compare(lambda w, i: (w > 0)[i] & (w < 1)[i], table, index)


def test_lookups_in_lookups() -> None:
    table, index = torch.randn(300, 40), torch.randint(0, 300, (5,))
    compare(lambda w, i: (w[(w.sum(1).argsort() + 0)] * 2)[i], table, index)
    compare(lambda w, i: (torch.arange(600) * 3 % 300)[i * 2], table, index)


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes(dynamic: bool | None) -> None:
    def loss(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, t, reduction="none")

    sizes = [(20, 64), (3, 200), (1, 16), (0, 16), (7, 1)]
    calls = [(torch.randn(r, c), torch.randint(0, c, (r,))) for r, c in sizes]
    compare(loss, *calls[0], calls=calls[1:], dynamic=dynamic)


def test_an_index_out_of_range_is_an_error() -> None:
    x, index = torch.randn(6, 50), torch.tensor([1, 50, 2, 3, 4, 5])
    call = torch.compile(lambda x, i: torch.gather(x.exp(), 1, i[:, None]), backend="kerf")
    with pytest.raises(IndexError, match="50"):
        call(x, index)
    call(x, index % 50)


def test_updates_between_are_seen() -> None:
    def function(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        doubled = x * 2
        x.add_(1)
        return doubled[i], x * 1

    compare(function, torch.randn(200, 30), torch.tensor([4, 9]))
