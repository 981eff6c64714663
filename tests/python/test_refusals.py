"""What eager refuses must not come out as a number: the same call raises under Kerf."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

MASK = torch.tensor([True, False, True])
FIRST = torch.tensor([0])

BEYOND: dict[str, Callable[[torch.Tensor, float], object]] = {
    "clamp": lambda x, v: x.clamp(max=v),
    "clamp_min": lambda x, v: x.clamp_min(v),
    "fill": lambda x, v: x.clone().fill_(v),
    "full": lambda x, v: torch.full((2,), v, dtype=x.dtype),
    "full_like": lambda x, v: torch.full_like(x, v),
    "new_full": lambda x, v: x.new_full((2,), v),
    "masked_fill": lambda x, v: x.masked_fill(MASK, v),
    "index_fill": lambda x, v: x.index_fill(0, FIRST, v),
    "scatter": lambda x, v: x.scatter(0, FIRST, v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "where": lambda x, v: torch.where(MASK, x, v),
    "alpha": lambda x, v: torch.add(x, x, alpha=v),
    "hardtanh": lambda x, v: F.hardtanh(x, 0, v),
    "threshold": lambda x, v: F.threshold(x, 0, v),
    "linspace": lambda x, v: torch.linspace(0, v, 3, dtype=x.dtype),
    "pow": lambda x, v: x**v,
}

REFUSED: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "integers to a negative power": (lambda x: x**-1, (torch.tensor([1, 2]),)),
    "bool minus a number": (lambda x: x - 0.5, (MASK,)),
    "argmax of bool": (lambda x: x.argmax(), (MASK,)),
    "index_put of another dtype": (
        lambda x, i, v: x.index_put((i,), v),
        (torch.ones(3), FIRST, torch.tensor([3], dtype=torch.int32)),
    ),
}

WHOLE, BYTES = torch.arange(12).reshape(1, 3, 4), torch.ones(2, 3, dtype=torch.uint8)
HALF = torch.ones(1, 1, 4, 4, 4, dtype=torch.float16)
# Torch traces these and has no kernel for them.
NO_KERNEL: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "rounding of bool": (lambda x: (x | x).ceil(), (MASK,)),
    "shifts of bool": (lambda x: x << x, (MASK,)),
    "powers of bool": (lambda x: torch.pow(x[0], x[1]), (MASK,)),
    "clamp of bool": (lambda x: x.clamp(x, x), (MASK,)),
    "clamp of bool to a number": (lambda x: x.clamp(max=True), (MASK,)),
    "threshold of bool": (lambda x: F.threshold(x, 0, 1), (MASK,)),
    "reflection of bool": (lambda x: F.pad(x, (1, 1), mode="reflect"), (MASK[None],)),
    "lerp of integers": (lambda x: torch.lerp(x, x + 4, 0.5), (WHOLE,)),
    "windows of integers": (lambda x: F.unfold(x[None], 2), (WHOLE,)),
    "huber_loss of integers": (lambda x: F.huber_loss(x, x + 1), (BYTES,)),
    "nll_loss of integers": (lambda x, i: F.nll_loss(x, i, reduction="none"), (BYTES, torch.tensor([0, 2]))),
    "avg_pool3d of halves": (lambda x: F.avg_pool3d(x, 2), (HALF,)),
}
REFUSED |= NO_KERNEL


def _raises(function: Callable[..., object], *inputs: torch.Tensor) -> bool:
    try:
        function(*inputs)
    except Exception:
        return True
    return False


def _compiled(function: Callable[..., object]) -> Callable[..., object]:
    torch._dynamo.reset()
    return torch.compile(function, backend="kerf")


@pytest.mark.parametrize("dtype, value", [(torch.int8, 300), (torch.uint8, -300), (torch.float16, 70000)])
@pytest.mark.parametrize("name", BEYOND)
def test_numbers_that_the_dtype_cannot_hold(name: str, dtype: torch.dtype, value: float) -> None:
    x = torch.ones(3, dtype=dtype)

    def function(x: torch.Tensor) -> object:
        return BEYOND[name](x, value)

    assert _raises(_compiled(function), x) == _raises(function, x)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, inputs = REFUSED[name]
    assert _raises(function, *inputs)
    assert _raises(_compiled(function), *inputs)
