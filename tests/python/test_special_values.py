"""Unary operations at zeros of both signs, infinities, NaN, subnormals and the largest numbers.

Every result must be of the kind (NaN, infinity, zero, with its sign) that eager gives in its vector loop
or in its scalar tail, or that float64 rounds to: these differ where eager overflows early. Where eager's
result and ours are below the smallest normal number, only those of zeros are compared: eager flushes some.
"""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from compare import compare

NAMES = """
    acos acosh asin asinh atan atanh cos cosh erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p
    log2 neg abs reciprocal rsqrt sigmoid sign sgn sin sinh sqrt tan tanh floor ceil round trunc
    frac square relu logit nan_to_num sinc deg2rad rad2deg digamma
"""
ACTIVATIONS = """
    silu gelu mish softplus hardswish hardsigmoid elu selu celu leaky_relu logsigmoid tanhshrink
    softsign relu6 hardtanh hardshrink softshrink
"""

OPERATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = (
    {name: getattr(torch, name) for name in NAMES.split()}
    | {name: getattr(F, name) for name in ACTIVATIONS.split()}
    | {f"power {p}": lambda x, p=p: x**p for p in (2, 3, 0.5, -0.5, -1, -2, 1.7, 0.0)}
    | {
        "2 ** x": lambda x: 2.0**x,
        "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
        "logit(eps)": lambda x: torch.logit(x, 0.1),
        "threshold": lambda x: F.threshold(x, 0.1, 2.0),
        "entr": torch.special.entr,
        "xlogy": lambda x: torch.xlogy(x.nan_to_num(1.5, 2.5, 0.0), x),
        "xlog1py": lambda x: torch.special.xlog1py(x.nan_to_num(1.5, 2.5, 0.0), x),
        "0 log(1 + x)": lambda x: torch.special.xlog1py(0.0, x),
        "fmod": lambda x: torch.fmod(x, 1.5),
        "remainder": lambda x: torch.remainder(x, 1.5),
        "reciprocals of sin": lambda x: 1 / torch.sin(x),
    }
)


def _values(dtype: torch.dtype, largest: float) -> torch.Tensor:
    info = torch.finfo(dtype)
    sizes = [0.0, math.inf, info.max, info.tiny, info.smallest_normal / 2, info.smallest_normal * info.eps]
    sizes += [
        info.eps,
        1e-3,
        0.3,
        0.5,
        0.7,
        1,
        1.5,
        2.5,
        3,
        5.5,
        6,
        10,
        13.5,
        20,
        50,
        88.8,
        104,
        710,
        745,
        6e4,
    ]
    values = torch.tensor([s * v for v in sizes for s in (1, -1)] + [math.nan], dtype=torch.float64).to(dtype)
    return values[~(values.abs() > largest)]


def _kind(values: torch.Tensor) -> torch.Tensor:
    """0 is NaN, 1 zero, 2 finite, 3 infinite; negative with the sign."""
    size = torch.where(values == 0, 1, torch.where(values.isinf(), 3, 2))
    return torch.where(values.isnan(), 0, torch.where(torch.signbit(values), -size, size))


def _faults(name: str, x: torch.Tensor, got: torch.Tensor) -> list[str]:
    operation, info = OPERATIONS[name], torch.finfo(got.dtype)
    eager, referee = operation(x), operation(x.double())
    tail = torch.cat([operation(one) for one in x.split(1)])
    right_kind = torch.stack([_kind(got) == _kind(c) for c in (eager, tail, referee.to(x.dtype))]).any(0)
    error, eagers_error = (got.double() - referee).abs(), (eager.double() - referee).abs()
    allowed = 4 * eagers_error + 8 * info.eps * referee.abs().clamp(min=info.smallest_normal)
    finite = got.isfinite() & eager.isfinite() & referee.isfinite()
    flushed = (got.abs() < info.smallest_normal) & (eager.abs() < info.smallest_normal) & (x != 0)
    wrong = (~right_kind | (finite & (error > allowed))) & ~flushed
    return [f"{name}({a}) = {b}" for a, b in zip(x[wrong], got[wrong], strict=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_special_values(dtype: torch.dtype) -> None:
    names = [name for name in OPERATIONS if not (name == "digamma" and dtype == torch.float16)]
    compiled = torch.compile(lambda x: [OPERATIONS[name](x) for name in names], backend="kerf")
    moderate = _values(dtype, 1e4)
    for x in (moderate.repeat(3), _values(dtype, math.inf).repeat(3), moderate[:2]):
        faults = [_faults(name, x, got) for name, got in zip(names, compiled(x), strict=True)]
        assert not sum(faults, [])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_zeros_keep_their_sign_beside_other_comparisons(dtype: torch.dtype) -> None:
    """LLVM made one comparison of both and lost the sign, where x is widened."""
    x = torch.tensor([0.0, -0.0, 1.0, -1.0], dtype=dtype).repeat(16)
    compiled = torch.compile(
        lambda x: (x.relu(), x.log(), x.double().relu(), x.double().log()), backend="kerf"
    )
    relu, _, wide, _ = compiled(x)
    assert not _faults("relu", x, relu) + _faults("relu", x.double(), wide)


@pytest.mark.parametrize("values", [[math.inf], [-math.inf], [math.nan], [math.inf, -math.inf]], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_mean_and_variance_with_infinities(dtype: torch.dtype, values: list[float]) -> None:
    """Eager's running mean is lost after an infinite element, and is infinite when that is the last one."""
    first, last, one = torch.randn(3, 20, 9).to(dtype)
    first[: len(values), 4] = torch.tensor(values, dtype=dtype)
    last[-1, 4] = values[0]

    def function(*inputs: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [torch.var_mean(x, dim) for x in inputs for dim in (0, 1, None)] + [
            torch.std_mean(inputs[0], 0)
        ]

    compare(function, first, last, one[:1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_logit_with_bounds_that_round_to_one(dtype: torch.dtype) -> None:
    x = torch.tensor([0.0, 1e-7, 0.5, 0.999, 1.0, 1.5, -2.0], dtype=dtype).repeat(9)
    compare(lambda x: (x.logit(1e-6), x.logit(1e-9), x.logit(0.3), x.logit()), x)


@pytest.mark.parametrize("row", [(1.0, math.inf, 2.0), (1.0, 2.0, math.inf), (math.inf, 1.0, -math.inf)])
def test_means_of_rows_with_infinities(row: tuple[float, ...]) -> None:
    """The mean that comes with a variance is a running one: an element after an infinite one makes it NaN."""
    compare(lambda x: torch.var_mean(x, 1), torch.tensor([row, (1.0, 2.0, 3.0)]))


def test_bits_of_bool() -> None:
    compare(lambda x: (x > 0).view(torch.uint8) + 1, torch.tensor([1.0, -1.0]))


def test_spread_of_numbers_whose_squares_overflow() -> None:
    x = torch.randn(7, 33, generator=torch.Generator().manual_seed(0)) * 1e30
    compare(lambda x: (x.std(), x.std(0), x.var(1), torch.std_mean(x, 1)), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_signs_of_equal_zeros(dtype: torch.dtype) -> None:
    """Of zeros that are equal the one that eager's loops keep. Not here: `maximum`, `minimum` and `clamp` by
    tensors keep one in vectors and the other in the elements behind them, `amax` and `amin` one in rows that
    fill vectors and the other in short rows."""
    x = torch.tensor([0.0, -0.0, -0.0, 0.0, -1.0, -0.0, 0.0, -2.0]).repeat(4, 5).to(dtype)
    y = x.roll(1, 1)
    compare(lambda x, y: (x.fmax(y), x.fmin(y)), x, y)
    compare(lambda x: [x.clamp(a, b) for a, b in ((0.0, None), (-0.0, 0.0), (None, 0.0), (None, -0.0))], x)
    for rows in (x, x.T.contiguous(), x[:, :1], -x.abs(), x.repeat(1, 40)):
        compare(lambda x: [f(x, dim) for f in (torch.max, torch.min) for dim in (0, 1)], rows)
    images = torch.stack([x, x.roll(1, 1), x.roll(2, 0).roll(3, 1)])[None]
    for image in (images, images.contiguous(memory_format=torch.channels_last)):
        compare(lambda x: [F.max_pool2d(x, k, s, p) for k, s, p in ((2, 2, 0), (3, 2, 1), (3, 1, 1))], image)
        compare(lambda x: [F.adaptive_max_pool2d(x, n) for n in (1, 3, 4)], image)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_means_that_norms_save(value: float) -> None:
    x = torch.randn(2, 6, 16)
    x[0, 1, 2] = value

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        layer = torch.native_layer_norm(x, (16,), None, None, 1e-5)
        group = torch.native_group_norm(x, None, None, 2, 6, 16, 2, 1e-5)
        batch = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
        return [*layer, *group, *batch]

    compare(function, x)
