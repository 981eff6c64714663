"""Convolutions run channels last inside; users see eager's numbers and eager's strides."""

import copy
from collections.abc import Callable

import numeric
import pytest
import torch
import torch.nn.functional as F
from compare import compare
from torch import nn


class Network(nn.Module):
    """Convolutions of several kinds; pointwise work, a residual, a concatenation and a fold between them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1, bias=False)
        self.norm = nn.GroupNorm(4, 16)
        self.point = nn.Conv2d(16, 32, 1)
        self.depthwise = nn.Conv2d(32, 32, 3, 1, 1, groups=32)
        self.dilated = nn.Conv2d(32, 8, 1, dilation=2)
        self.head = nn.Linear(40, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.norm(self.stem(x)))
        y = F.silu(self.point(x))
        y = y + self.depthwise(y)
        y = torch.cat([y, self.dilated(y)], 1)
        return self.head(y.mean((2, 3))), y


def _train(call: Callable, model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    x = x.clone().requires_grad_()
    model.zero_grad()
    logits, image = call(x)
    (logits.square().sum() + image.sin().sum()).backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    return {"logits": logits.detach(), "image": image.detach(), "x": x.grad, **gradients}


def _reasons(model: nn.Module, x: torch.Tensor, dynamic: bool | None = None) -> list[str]:
    torch._dynamo.reset()
    expected = _train(model, model, x)
    got = _train(torch.compile(model, backend="kerf", dynamic=dynamic), model, x)
    for name in ("logits", "image", "x"):
        assert got[name].stride() == expected[name].stride(), name
    referee = copy.deepcopy(model).double()
    return [
        v.reason for v in numeric.judge(got, [expected], _train(referee, referee, x.double())) if v.reason
    ]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 32, 32), (1, 3, 17, 9), (3, 3, 1, 1)])
def test_training(shape: tuple[int, ...], channels_last: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    assert _reasons(Network(), x) == []


def test_dynamic_sizes() -> None:
    torch.manual_seed(0)
    model = Network()
    assert _reasons(model, torch.randn(2, 3, 32, 24), dynamic=True) == []
    call = torch.compile(model, backend="kerf", dynamic=True)
    for shape in ((2, 3, 32, 24), (5, 3, 16, 40)):
        x = torch.randn(shape)
        torch.testing.assert_close(call(x), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("arguments", [{}, {"groups": 4}, {"stride": 2, "padding": 1}, {"dilation": 2}])
@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kinds_of_convolutions(kind: type[nn.Module], arguments: dict[str, int], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(kind(8, 4, 3, **arguments), nn.ReLU(), kind(4, 8, 1)).to(dtype)
    x = torch.randn(2, 8, 16, 16).to(dtype)
    torch._dynamo.reset()
    got = torch.compile(model, backend="kerf")(x)
    expected = model(x)
    assert got.stride() == expected.stride()
    referee = copy.deepcopy(model).double()(x.double())
    verdicts = numeric.judge({"y": got.detach()}, [{"y": expected.detach()}], {"y": referee.detach()})
    assert [v.reason for v in verdicts if v.reason] == []


def test_one_channel_and_one_pixel() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.Tanh(), nn.Conv2d(6, 1, 3), nn.AdaptiveAvgPool2d(1), nn.Conv2d(1, 5, 1)
    )
    x = torch.randn(4, 1, 12, 12)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, backend="kerf")(x), model(x))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dynamic", [False, True])
def test_batch_norms_of_transposed_operands(training: bool, dynamic: bool) -> None:
    """Eager's kernels give contiguous results and gradients; tracing says the operand's strides."""

    def function(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> list[torch.Tensor]:
        statistics = (mean, variance)
        norms = [F.batch_norm(x.transpose(1, 2), *statistics, training=training)]
        return [*norms, F.batch_norm(x.transpose(1, 2), None, None, training=True), *statistics]

    x = torch.randn(2, 5, 3, requires_grad=True)
    calls = [(torch.randn(3, 7, 3, requires_grad=True), torch.zeros(3), torch.ones(3))]
    compare(function, x, torch.zeros(3), torch.ones(3), train=True, dynamic=dynamic, calls=calls * dynamic)


STRIDED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "copysign": torch.copysign,
    "xlogy": torch.xlogy,
    "xlog1py": torch.special.xlog1py,
    "floor_divide": torch.floor_divide,
    "isin": lambda x, y: torch.isin(x, y[0, 0]),
    "roll": lambda x, y: x.roll(1, 1),
    "channel_shuffle": lambda x, y: F.channel_shuffle(x, 2),
    "max_unpool2d": lambda x, y: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "logsigmoid": lambda x, y: F.logsigmoid(x),
    "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction="none"),
    "cross_entropy": lambda x, y: F.cross_entropy(x, y[:, 0].gt(0).long(), reduction="none"),
}


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("dynamic", [False, True])
def test_strides_of_what_tracing_gives_others(name: str, dynamic: bool) -> None:
    x, y = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)
    function = STRIDED[name]
    for call in [(x, y), (x.to(memory_format=torch.channels_last), y), (x, y.mT.contiguous().mT)]:
        torch._dynamo.reset()
        got = torch.compile(function, backend="kerf", dynamic=dynamic)(*call)
        assert got.stride() == function(*call).stride()


@pytest.mark.parametrize(
    "function",
    [lambda x: x.conj().imag + 1, lambda x: x.conj() * 2, lambda x: (x * 2).conj().imag.conj() + x.real],
    ids=["negated", "conjugated", "kept"],
)
def test_lazy_conjugation_and_negation(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """The bits for them never reach a kernel: of inputs, nor of values inside, in whatever strides."""
    plain = torch.randn(6, 4, dtype=torch.complex64)
    for x in (plain, plain.conj(), plain[::2].conj().mT, plain.conj()[1].expand(3, 4)):
        torch.testing.assert_close(torch.compile(function, backend="kerf")(x), function(x))
    for x in (plain.conj().imag, plain.conj().imag[::2].mT, plain.conj().imag[1].expand(3, 4)):
        torch.testing.assert_close(torch.compile(torch.exp, backend="kerf")(x), x.exp())


def test_results_that_nothing_writes() -> None:
    """A cat of nothing has no pieces, and so no kernel."""
    compare(lambda x: (torch.cat([x, x * 2]), x.sum(0)), torch.randn(0, 3))
