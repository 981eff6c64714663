"""Folds of many elements are as accurate as eager's, along memory and across it."""

import numeric
import pytest
import torch


def _judged(function, x: torch.Tensor) -> list[str]:
    """Reasons why kerf's result is not as good as eager's, with a float64 referee."""
    got = {"result": torch.compile(function, backend="kerf")(x)}
    verdicts = numeric.judge(got, [{"result": function(x)}], {"result": function(x.double())})
    return [v.reason for v in verdicts if v.reason]


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("shape", [(4096, 64), (262144, 8), (7, 100001)])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "norm"])
def test_fold(name: str, shape: tuple[int, int], dim: int | None) -> None:
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    assert _judged(lambda x: getattr(x, name)(dim=dim), x) == []


def test_fold_over_batch_and_plane() -> None:
    x = torch.rand(16, 5, 112, 112, generator=torch.Generator().manual_seed(0))
    assert _judged(lambda x: x.sum((0, 2, 3)), x) == []
    assert _judged(lambda x: x.var((0, 2, 3)), x) == []


def test_fold_of_unknown_length() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x.sum(0), backend="kerf", dynamic=True)
    for n in (5, 300, 70001):
        x = torch.rand(n, 3, generator=torch.Generator().manual_seed(0))
        got, referee = {"result": compiled(x)}, {"result": x.double().sum(0)}
        assert [v.reason for v in numeric.judge(got, [{"result": x.sum(0)}], referee) if v.reason] == []


@pytest.mark.parametrize(
    "values", [[float("inf")], [float("inf"), -float("inf")], [float("nan")], [3e38, 3e38]]
)
def test_fold_of_what_is_not_finite(values: list[float]) -> None:
    x = torch.ones(5000, 3)
    x[100 : 100 + len(values), 1] = torch.tensor(values)
    torch._dynamo.reset()
    torch.testing.assert_close(
        torch.compile(lambda x: x.sum(0), backend="kerf")(x), x.sum(0), equal_nan=True, rtol=1e-6, atol=0
    )
