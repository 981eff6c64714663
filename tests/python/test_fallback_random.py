"""Option fallback_random: values, gradients and the generator's state are eager's, to the bit."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

OPTIONS = {"fallback_random": True}


def _observe(function: Callable[..., Any], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Results and gradients of two calls in a row, and the state of the generator after each step."""
    torch.manual_seed(3)
    seen = []
    for _ in range(2):
        leaves = [i.detach().clone().requires_grad_(i.requires_grad) for i in inputs]
        results = pytree.tree_leaves(function(*leaves))
        seen += [*results, torch.get_rng_state()]
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        if wanted:
            seen += torch.autograd.grad(sum((r * r).sum() for r in results), wanted)
            seen.append(torch.get_rng_state())
    return seen


def _assert_eager(function: Callable[..., Any], *inputs: torch.Tensor, dynamic: bool | None = None) -> None:
    compiled = torch.compile(function, backend="kerf", options=OPTIONS, dynamic=dynamic)
    got, expected = _observe(compiled, list(inputs)), _observe(function, list(inputs))
    assert len(got) == len(expected)
    for index, (g, e) in enumerate(zip(got, expected, strict=True)):
        assert g.dtype == e.dtype and g.stride() == e.stride(), index
        assert torch.equal(g, e), index


DRAWS = {
    "rand": lambda x: torch.rand(3, 5) + x,
    "randn": lambda x: torch.randn(3, 5) * x,
    "rand_like": lambda x: torch.rand_like(x) + x,
    "rand_like of a computed transposed tensor": lambda x: torch.rand_like((x + 1).t()),
    "randn_like in another dtype": lambda x: torch.randn_like(x, dtype=torch.float64),
    "randint": lambda x: torch.randint(-4, 9, (7, 2)),
    "randint_like": lambda x: torch.randint_like(x, 5) + x,
    "randperm": lambda x: torch.randperm(11),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.3) + 1,
    "normal": lambda x: (torch.normal(0.5, 2.0, (5,)), torch.normal(x, 2.0), torch.normal(x, x.abs())),
    "normal_": lambda x: (x + 1).normal_(1.0, 3.0) * x,
    "uniform_": lambda x: torch.empty(6, 2).uniform_(-1, 1),
    "exponential_": lambda x: torch.empty(6).exponential_(2.0).log(),
    "geometric_": lambda x: torch.empty(6).geometric_(0.4),
    "cauchy_": lambda x: torch.empty(6).cauchy_(),
    "log_normal_": lambda x: torch.empty(6).log_normal_(),
    "random_": lambda x: torch.empty(6, dtype=torch.int64).random_(3, 12),
    "multinomial": lambda x: torch.multinomial(x.sigmoid(), 2),
    "poisson": lambda x: torch.poisson(x.abs() * 4),
    "a draw that nobody reads": lambda x: (torch.rand(4), torch.empty(3).uniform_(), x + 1)[2],
    "several in order": lambda x: (torch.rand(3), x + 1, torch.randn(4), x[0] + torch.rand(())),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, hard=True),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draw(name: str) -> None:
    _assert_eager(DRAWS[name], torch.randn(3, 5))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.104, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_dropout(p: float, dtype: torch.dtype) -> None:
    x = torch.randn(6, 9, dtype=dtype)

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(F.dropout(x * 2, p, True).t(), p, True) + F.dropout(x, p, False).t()

    _assert_eager(function, x)
    _assert_eager(function, x.requires_grad_())


@pytest.mark.parametrize(
    "dropout", [F.dropout1d, F.dropout2d, F.feature_alpha_dropout, F.alpha_dropout, F.rrelu, F.dropout3d]
)
def test_kinds_of_dropout(dropout: Callable[..., torch.Tensor]) -> None:
    shape = (
        (2, 3, 4, 5, 6) if dropout is F.dropout3d else (2, 3, 4, 5) if dropout is F.dropout2d else (2, 3, 4)
    )
    _assert_eager(lambda x: dropout(x, training=True), torch.randn(shape, requires_grad=True))


def test_inplace_dropout_and_infinities() -> None:
    x = torch.tensor([[float("inf"), -0.0, 1.0, -1.0, float("nan")]] * 5, requires_grad=True)
    compiled = torch.compile(
        lambda x: F.dropout(x * 1, 0.45, True, inplace=True), backend="kerf", options=OPTIONS
    )
    torch.manual_seed(1)
    got = compiled(x)
    torch.manual_seed(1)
    expected = F.dropout(x, 0.45, True)
    assert torch.equal(got.isnan(), expected.isnan())
    assert torch.equal(torch.signbit(got.nan_to_num()), torch.signbit(expected.nan_to_num()))


def test_native_dropout_called_by_the_user() -> None:
    _assert_eager(lambda x: torch.native_dropout(x, 0.15, True), torch.randn(5, 4))
    _assert_eager(lambda x: torch.native_dropout(x, 1.0, True), torch.randn(5, 4))


def test_dynamic_sizes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.15, True) + torch.rand_like(x) * torch.randn(x.shape[0], 1)

    _assert_eager(function, torch.randn(6, 9, requires_grad=True), dynamic=True)


@pytest.mark.parametrize("partition", ["default", "min_cut"])
def test_a_draw_of_the_forward_is_not_repeated_by_the_backward(partition: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch.rand(7)
        return (x * torch.rand(5)).sin() + torch.rand(5)

    options = OPTIONS | {"partition": partition}
    compiled = torch.compile(function, backend="kerf", options=options)
    x = torch.randn(5, requires_grad=True)
    assert all(map(torch.equal, _observe(compiled, [x]), _observe(function, [x])))


def test_checkpoint() -> None:
    weight = torch.randn(9, 9)

    def block(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(torch.tanh(F.dropout(x @ weight, 0.15, True)), 0.45, True)

    def function(x: torch.Tensor) -> torch.Tensor:
        x = checkpoint(block, F.dropout(x, 0.3, True), use_reentrant=False)
        return F.dropout(checkpoint(block, x, use_reentrant=False), 0.2, True)

    _assert_eager(function, torch.randn(6, 9, requires_grad=True))
