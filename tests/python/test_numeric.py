"""The judgement itself: it must pass what is as good as eager, and fail what is not."""

import numeric
import pytest
import torch


def _three(seed: int = 0) -> tuple[dict, dict, dict]:
    """Eager, a candidate equal to it, and the referee, for one product of matrices."""
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(64, 64, generator=generator) for _ in range(2))
    eager = {"product": a @ b}
    return eager, {"product": eager["product"].clone()}, {"product": a.double() @ b.double()}


def _reasons(candidate: dict, eager: dict, referee: dict, **kwargs) -> list[str]:
    return [v.reason for v in numeric.judge(candidate, [eager], referee, **kwargs) if v.reason]


def test_equal_passes():
    eager, candidate, referee = _three()
    assert _reasons(candidate, eager, referee) == []


def test_one_wrong_element_fails():
    eager, candidate, referee = _three()
    candidate["product"][3, 5] += 1e-3
    assert _reasons(candidate, eager, referee)


def test_lower_precision_fails():
    eager, candidate, referee = _three()
    candidate["product"] = candidate["product"].bfloat16().float()
    assert _reasons(candidate, eager, referee)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_lost_element_fails(value):
    eager, candidate, referee = _three()
    candidate["product"][0, 0] = value
    assert _reasons(candidate, eager, referee)


def test_missing_infinity_fails():
    eager = {"x": torch.tensor([float("inf"), 1.0])}
    candidate = {"x": torch.tensor([-float("inf"), 1.0])}
    assert _reasons(candidate, eager, {"x": eager["x"].double()})


def test_sign_of_zero_counts_when_asked():
    eager, candidate = {"x": torch.tensor([0.0, 1.0])}, {"x": torch.tensor([-0.0, 1.0])}
    referee = {"x": eager["x"].double()}
    assert _reasons(candidate, eager, referee) == []
    assert _reasons(candidate, eager, referee, signed_zeros=True)


def test_noise_of_a_zero_gradient_passes_but_a_value_there_does_not():
    eager, candidate, referee = _three()
    eager["bias"], candidate["bias"] = torch.full((4,), 1e-8), torch.full((4,), -2e-8)
    referee["bias"] = torch.zeros(4, dtype=torch.float64)
    assert _reasons(candidate, eager, referee) == []
    candidate["bias"][0] = 1e-2
    assert _reasons(candidate, eager, referee)


def test_integers_are_exact():
    eager, candidate = {"i": torch.tensor([1, 2])}, {"i": torch.tensor([1, 3])}
    assert _reasons(candidate, eager, eager)


def test_dtype_and_shape_count():
    eager = {"x": torch.ones(2, 3)}
    assert _reasons({"x": torch.ones(2, 3, dtype=torch.float64)}, eager, eager)
    assert _reasons({"x": torch.ones(3, 2)}, eager, eager)
