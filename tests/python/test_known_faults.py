"""Faults that are known and not mended yet, each as the test that must pass once it is.

They are strict: a mended fault fails here until its mark is taken away.
"""

import numeric
import pytest
import torch


def _judged(function, x: torch.Tensor) -> list[str]:
    """Reasons why kerf's result is not as good as eager's, with a float64 referee."""
    got = {"result": torch.compile(function, backend="kerf")(x)}
    verdicts = numeric.judge(got, [{"result": function(x)}], {"result": function(x.double())})
    return [v.reason for v in verdicts if v.reason]


@pytest.mark.xfail(
    strict=True, reason="folds over outer dimensions add serially: blocked partial sums needed"
)
@pytest.mark.parametrize("shape", [(4096, 64), (262144, 8)])
def test_sum_over_rows(shape: tuple[int, int]) -> None:
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    assert _judged(lambda x: x.sum(0), x) == []


@pytest.mark.xfail(
    strict=True, reason="folds over outer dimensions add serially: blocked partial sums needed"
)
def test_variance_over_rows() -> None:
    x = torch.rand(262144, 8, generator=torch.Generator().manual_seed(0))
    assert _judged(lambda x: x.var(0), x) == []
