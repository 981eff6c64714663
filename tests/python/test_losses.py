"""Losses, and small operators of training that are compiled as formulas, forward and backward."""

from collections.abc import Callable

import kerf
import pytest
import torch
import torch.nn.functional as F
from compare import compare

REDUCTIONS = ["none", "mean", "sum"]
LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "mse": F.mse_loss,
    "smooth l1": F.smooth_l1_loss,
    "smooth l1 (0.3)": lambda *a, reduction: F.smooth_l1_loss(*a, beta=0.3, reduction=reduction),
    "smooth l1 (0)": lambda *a, reduction: F.smooth_l1_loss(*a, beta=0.0, reduction=reduction),
    "huber (0.5)": lambda *a, reduction: F.huber_loss(*a, delta=0.5, reduction=reduction),
    "soft margin": F.soft_margin_loss,
    "bce with logits": F.binary_cross_entropy_with_logits,
}
SHAPES = [(), (0,), (5,), (7, 33)]


def _operands(
    shape: tuple[int, ...], name: str = "", dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    torch.manual_seed(0)
    x, y = (torch.randn(shape).to(dtype) for _ in range(2))
    if x.numel() > 5:
        x.view(-1)[:4] = y.view(-1)[:4] + torch.tensor([0.5, -0.5, 0.3, 0.0], dtype=dtype)  # at the bounds
    return [x.requires_grad_(), y.requires_grad_(name != "soft margin")]


def _is_compiled() -> bool:
    """Whether the last compare had no step but kernels."""
    return not any(record.externs for record in kerf.compilations())


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, reduction: str) -> None:
    for shape in SHAPES:
        if shape == (0,) and reduction == "mean":
            continue  # torch does not trace its backward
        kerf.reset()
        compare(lambda x, y: LOSSES[name](x, y, reduction=reduction), *_operands(shape, name), train=True)
        assert _is_compiled()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_other_types(name: str, dtype: torch.dtype) -> None:
    compare(lambda x, y: LOSSES[name](x, y, reduction="mean"), *_operands((7, 33), name, dtype), train=True)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_what_is_not_finite(name: str) -> None:
    special = torch.tensor([float("inf"), float("-inf"), float("nan"), 100.0, -100.0, 0.0])
    x, y = (grid.reshape(-1).clone() for grid in torch.meshgrid(special, special, indexing="ij"))
    compare(lambda x, y: LOSSES[name](x, y, reduction="none"), x.requires_grad_(), y, train=True)


def test_losses_of_dynamic_sizes() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(x, y) + F.huber_loss(x, y) + F.binary_cross_entropy_with_logits(x, y)

    calls = [tuple(_operands((3, 11)))]
    compare(function, *_operands((7, 33)), train=True, dynamic=True, calls=calls)


def test_weights_of_binary_cross_entropy() -> None:
    x, y = _operands((7, 5))
    weight, positive = torch.rand(7, 1), torch.rand(5) * 3

    def function(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p)

    compare(function, x, y.detach().sigmoid(), weight, positive, train=True)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_margin(reduction: str) -> None:
    """What stands behind the first -1 of a row is no label."""
    x = torch.randn(4, 6, requires_grad=True)
    target = torch.tensor(
        [[3, 0, -1, 1, 2, 4], [-1, 2, 2, 1, 0, 0], [5, 4, 3, 2, 1, 0], [2, -1, -1, 0, 1, 1]]
    )
    compare(lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), x, target, train=True)


ACTIVATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "celu": lambda x, w: F.celu(x, 0.7),
    "prelu": lambda x, w: F.prelu(x, w),
    "prelu of one": lambda x, w: F.prelu(x, w[:1]),
    "glu": lambda x, w: F.glu(x, 1),
    "log sigmoid": lambda x, w: F.logsigmoid(x),
    "norms": lambda x, w: F.pairwise_distance(x[0], x[1]) + torch.norm(x, dim=3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 6, 5, 7).to(dtype).requires_grad_()
    weight = torch.rand(6).to(dtype).requires_grad_()
    kerf.reset()
    compare(ACTIVATIONS[name], x, weight, train=True)
    assert _is_compiled()


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_shuffles(layout: str) -> None:
    """Channels to pixels and back, and channels among groups; also of a factor that moves nothing."""
    for function in (
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.pixel_shuffle(x, 1),
        lambda x: F.pixel_unshuffle(x, 3),
        lambda x: F.channel_shuffle(x.contiguous(), 4),  # torch traces contiguous results of all layouts
        lambda x: F.pixel_shuffle(x[0], 2) * 2,
    ):
        x = torch.randn(2, 8, 6, 9)
        if layout == "channels_last":
            x = x.to(memory_format=torch.channels_last)
        kerf.reset()
        compare(function, x.requires_grad_(), train=True, dynamic=False)
        assert _is_compiled()


def test_shuffles_of_dynamic_sizes() -> None:
    calls = [(torch.randn(3, 12, 4, 6, requires_grad=True),)]
    x = torch.randn(2, 12, 6, 4, requires_grad=True)
    compare(
        lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2) + F.channel_shuffle(x, 3),
        x,
        train=True,
        dynamic=True,
        calls=calls,
    )


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_weight_norm(dim: int) -> None:
    v = torch.randn(4, 6, 5, requires_grad=True)
    g = torch.rand([n if i == dim else 1 for i, n in enumerate(v.shape)], requires_grad=True)
    compare(lambda v, g: torch._weight_norm(v, g, dim), v, g, train=True)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy_backward(reduction: str) -> None:
    x, y = _operands((7, 5))
    bounds = torch.tensor([0.0, 1.0, 1e-30, 1.0, 0.0])
    x = torch.cat([x.detach().sigmoid().flatten(), bounds]).requires_grad_()
    y = torch.cat([y.detach().sigmoid().flatten(), torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0])])
    weight = torch.rand(40)
    kerf.reset()
    compare(lambda x, y, w: F.binary_cross_entropy(x, y, w, reduction=reduction), x, y, weight, train=True)
    assert not [e for r in kerf.compilations() for e in r.externs if "backward" in e.op]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_of_images(reduction: str, weighted: bool) -> None:
    """Targets [N, ...] of [N, C, ...]; one of them is ignored, and one image has nothing else."""
    weight = torch.rand(4) if weighted else None
    for dtype in (torch.float32, torch.bfloat16):
        for shape in [(3, 4, 5, 6), (2, 4, 7), (2, 4, 3, 2, 5), (2, 4, 0, 3)]:
            torch.manual_seed(0)
            target = torch.randint(0, 4, (shape[0], *shape[2:]))
            target[0] = -100
            target.flatten()[1::3] = -100
            x = torch.randn(shape).to(dtype).requires_grad_()
            kerf.reset()
            compare(
                lambda x, t, w: F.cross_entropy(x, t, w, reduction=reduction),
                x,
                target,
                None if weight is None else weight.to(dtype),
                train=True,
            )
            assert _is_compiled()


def test_classes_of_images_of_dynamic_sizes() -> None:
    def inputs(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(shape, requires_grad=True), torch.randint(0, shape[1], (shape[0], *shape[2:]))

    compare(F.cross_entropy, *inputs(3, 4, 5, 6), train=True, dynamic=True, calls=[inputs(2, 4, 7, 3)])
    assert _is_compiled()


def test_a_class_that_is_none() -> None:
    torch._dynamo.reset()
    target = torch.tensor([[[0, 1], [4, 2]]])
    with pytest.raises(IndexError):
        torch.compile(F.cross_entropy, backend="kerf")(torch.randn(1, 4, 2, 2), target)
