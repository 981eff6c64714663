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


@pytest.mark.parametrize("rows", [49152, 12288])  # in two stages, in one
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_variance_of_values_that_drift(rows: int, offset: float) -> None:
    noise = torch.rand(rows, 4, generator=torch.Generator().manual_seed(0))
    x = noise + torch.linspace(offset, offset + 100, rows)[:, None]
    assert _judged(lambda x: x.var(0), x) == []
    assert _judged(lambda x: ((x - 3 * x.mean(0)) ** 2).sum(0), x) == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_variance_in_other_precisions(dtype: torch.dtype) -> None:
    x = torch.rand(49152, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    assert _judged(lambda x: x.var(0), x) == []


def test_batch_norm_of_few_channels() -> None:
    torch._dynamo.reset()
    x = torch.rand(16, 4, 48, 48, generator=torch.Generator().manual_seed(0))
    x = x.to(memory_format=torch.channels_last)

    def step(kind: str) -> dict[str, torch.Tensor]:
        dtype = torch.float64 if kind == "referee" else torch.float32
        norm = torch.nn.BatchNorm2d(4).to(dtype)
        leaf = x.to(dtype, copy=True).requires_grad_()
        model = torch.compile(norm, backend="kerf") if kind == "kerf" else norm
        out = torch.relu(model(leaf))
        (out * out.detach().sin()).sum().backward()
        return {
            "out": out.detach(),
            "grad": leaf.grad,
            "weight": norm.weight.grad,
            "bias": norm.bias.grad,
            "mean": norm.running_mean,
            "var": norm.running_var,
        }

    verdicts = numeric.judge(step("kerf"), [step("eager")], step("referee"))
    assert [v.reason for v in verdicts if v.reason] == []


@pytest.mark.parametrize("dim", [0, None])
def test_extrema_of_many_elements(dim: int | None) -> None:
    x = torch.randint(0, 50, (65536, 2), generator=torch.Generator().manual_seed(0)).float()
    holes = x.clone()
    holes[40000, 0] = holes[50000, 0] = holes[7, 1] = float("nan")
    for data in (x, -x, holes, -holes):
        for name in ("argmax", "argmin", "amax", "amin"):
            kwargs = {} if dim is None else {"dim": dim}
            torch._dynamo.reset()
            compiled = torch.compile(
                lambda x, name=name, kwargs=kwargs: getattr(x, name)(**kwargs), backend="kerf"
            )
            torch.testing.assert_close(
                compiled(data), getattr(data, name)(**kwargs), equal_nan=True, rtol=0, atol=0
            )


def test_truth_of_many_elements() -> None:
    x = torch.zeros(100000, 2, dtype=torch.bool)
    x[77777, 1] = True
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: (x.any(0), x.all(0), (~x).all(), x.any()), backend="kerf")
    for got, want in zip(compiled(x), (x.any(0), x.all(0), (~x).all(), x.any()), strict=True):
        assert torch.equal(got, want)


def test_product_of_many_elements() -> None:
    """Every factor rounds, in any order: that of one product is luck, that of 64 is not."""
    x = (0.01 * torch.randn(65536, 64, generator=torch.Generator().manual_seed(0))).exp()
    exact = x.double().prod(0)
    ours, eagers = (
        (result.double() / exact - 1).square().mean().sqrt()
        for result in (torch.compile(lambda x: x.prod(0), backend="kerf")(x), x.prod(0))
    )
    assert ours < 1.5 * eagers


def test_integer_folds_of_many_elements() -> None:
    n = torch.randint(-(2**62), 2**62, (65536, 2), generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.compile(lambda n: n.sum(0), backend="kerf")(n), n.sum(0))
    assert torch.equal(torch.compile(lambda n: (n | 1).prod(0), backend="kerf")(n), (n | 1).prod(0))


def test_long_fold_of_dynamic_batch() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: (x.sum((0, 2)), x.var((0, 2))), backend="kerf", dynamic=True)
    for batch in (3, 64, 20):
        x = (
            torch.rand(batch, 3, 1000, generator=torch.Generator().manual_seed(0))
            .transpose(1, 2)
            .contiguous()
        )
        x = x.transpose(1, 2)
        for i, got in enumerate(compiled(x)):
            want = [(y.sum((0, 2)), y.var((0, 2)))[i] for y in (x, x.double())]
            verdicts = numeric.judge({"result": got}, [{"result": want[0]}], {"result": want[1]})
            assert [v.reason for v in verdicts if v.reason] == []


@pytest.mark.parametrize(
    "values", [[float("inf")], [float("inf"), -float("inf")], [float("nan")], [3e38, 3e38]]
)
@pytest.mark.parametrize("rows", [5000, 50000])
def test_fold_of_what_is_not_finite(values: list[float], rows: int) -> None:
    x = torch.ones(rows, 3)
    x[100 : 100 + len(values), 1] = torch.tensor(values)
    torch._dynamo.reset()
    torch.testing.assert_close(
        torch.compile(lambda x: x.sum(0), backend="kerf")(x), x.sum(0), equal_nan=True, rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("rows", [4096, 1000, 2053])  # in chunks of 16, of 10, and as one fold
@pytest.mark.parametrize("norm", ["LayerNorm", "RMSNorm"])
def test_gradients_of_rows_and_columns(norm: str, rows: int) -> None:
    torch._dynamo.reset()
    x = torch.rand(rows, 192, generator=torch.Generator().manual_seed(0))

    def step(kind: str) -> dict[str, torch.Tensor]:
        dtype = torch.float64 if kind == "referee" else torch.float32
        module = getattr(torch.nn, norm)(192).to(dtype)
        leaf = x.to(dtype, copy=True).requires_grad_()
        model = torch.compile(module, backend="kerf") if kind == "kerf" else module
        (model(leaf) * x.sin().to(dtype)).sum().backward()
        return {"input": leaf.grad} | {name: p.grad for name, p in module.named_parameters()}

    verdicts = numeric.judge(step("kerf"), [step("eager")], step("referee"))
    assert [v.reason for v in verdicts if v.reason] == []
