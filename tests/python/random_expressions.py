"""The expressions of random functions: a template per kind, filled from the values that exist.

A template returns text, whether or not eager accepts it: the caller runs it and drops what fails.
`Draw.inexact` is set by templates whose results may differ in the last bits between right implementations.
"""

import random
from collections.abc import Callable

import torch

Template = Callable[["Draw"], str]

UNARY_EXACT = (
    "-{x}",
    "{x}.abs()",
    "{x}.sign()",
    "{x}.floor()",
    "{x}.ceil()",
    "{x}.round()",
    "{x}.trunc()",
    "{x}.frac()",
    "{x}.relu()",
    "{x}.square()",
    "{x}.reciprocal()",
    "{x}.isnan()",
    "{x}.isinf()",
    "{x}.isfinite()",
    "{x}.signbit()",
    "{x}.nan_to_num()",
    "{x}.nan_to_num(1.5, 2.5, -3.5)",
    "{x}.logical_not()",
    "F.relu6({x})",
    "F.hardtanh({x}, -0.5, 0.75)",
    "F.threshold({x}, 0.1, 2.0)",
    "F.hardshrink({x})",
    "F.softshrink({x})",
)
UNARY_INEXACT = (
    "{x}.exp()",
    "(-{x}.abs()).exp()",
    "{x}.exp2()",
    "{x}.abs().sqrt()",
    "{x}.expm1()",
    "{x}.log()",
    "({x}.abs() + 0.5).log()",
    "({x}.abs() + 0.5).log2()",
    "({x}.square() + 1).rsqrt()",
    "{x}.abs().log1p()",
    "{x}.sigmoid()",
    "{x}.tanh()",
    "{x}.cos()",
    "{x}.erf()",
    "{x}.atan()",
    "{x}.clamp(-0.9, 0.9).asin()",
    "{x}.sinh()",
    "F.gelu({x})",
    "F.gelu({x}, approximate='tanh')",
    "F.silu({x})",
    "F.softplus({x})",
    "F.elu({x})",
    "F.selu({x})",
    "F.celu({x}, 0.7)",
    "F.mish({x})",
    "F.leaky_relu({x}, 0.1)",
    "F.hardswish({x})",
    "F.hardsigmoid({x})",
    "F.logsigmoid({x})",
    "F.tanhshrink({x})",
    "F.softsign({x})",
    "{x}.logit(0.1)",
    "{x}.sinc()",
    "{x}.deg2rad()",
    "{x}.rad2deg()",
    "torch.special.entr({x})",
    "{x} ** 3",
    "({x}.abs() + 0.5) ** 1.7",
    "2.0 ** {x}",
)
BINARY_EXACT = (
    "{x} + {y}",
    "{x} - {y}",
    "{x} * {y}",
    "{x} / {y}",
    "{x} + {s}",
    "{x} - {s}",
    "{s} - {x}",
    "{x} * {s}",
    "{s} * {x}",
    "{x} / {s}",
    "{s} / {x}",
    "{x} // {s}",
    "{x} % {s}",
    "{x} % {y}",
    "{x}.fmod({s})",
    "torch.div({x}, {y}, rounding_mode='floor')",
    "torch.div({x}, {s}, rounding_mode='trunc')",
    "torch.copysign({x}, {y})",
    "torch.rsub({x}, {y})",
    "{x}.heaviside({y})",
    "torch.true_divide({x}, {y})",
)
BINARY_INEXACT = (
    "torch.atan2({x}, {y})",
    "torch.hypot({x}, {y})",
    "torch.logaddexp({x}, {y})",
    "torch.xlogy({x}, {y}.abs() + 0.1)",
    "torch.special.xlog1py({x}, {y}.abs())",
    "({x}.abs() + 0.3) ** {y}",
    "torch.add({x}, {y}, alpha=2)",
    "torch.sub({x}, {y}, alpha=0.3)",
    "torch.lerp({x}, {y}, 0.3)",
    "torch.addcmul({x}, {y}, {z}, value=0.5)",
    "torch.addcdiv({x}, {y}, {z}.abs() + 1, value=2)",
    "torch.lerp({x}, {y}, {z})",
)
COMPARE = (
    "{x} == {y}",
    "{x} != {y}",
    "{x} < {y}",
    "{x} >= {y}",
    "{x} > {s}",
    "{x} <= {s}",
    "{x} == {s}",
    "torch.logical_and({x}, {y})",
    "torch.logical_or({x}, {y})",
    "torch.logical_xor({x}, {y})",
)
INTEGER = (
    "{i} & {j}",
    "{i} | {j}",
    "{i} ^ {j}",
    "~{i}",
    "{i} << 2",
    "{i} >> 1",
    "{i} & 5",
    "{i} * {j}",
    "{i} // 3",
    "{i} % 4",
    "{i} ** 2",
    "{i} - 7",
    "3 - {i}",
    "{i} // ({j} * {j} + 1)",
    "{i} % ({j} * {j} + 2)",
    "{i}.sum()",
    "{i}.prod()",
    "{i}.cumsum(0)",
    "{i}.to({dtype})",
    "{i} / {j}",
    "{i} + 0.5",
    "{i}.float().mean()",
    "{i}.clamp(0, 3)",
    "{i}.abs()",
    "{i}.bool()",
)
CHOICE = (
    "torch.where({m}, {x}, {y})",
    "torch.where({m}, {x}, {s})",
    "torch.where({m}, {s}, {x})",
    "torch.where({x} > {s}, {x}, {y})",
    "{x}.masked_fill({m}, {s})",
    "{x}.clamp({lo}, {hi})",
    "{x}.clamp(min={lo})",
    "{x}.clamp(max={hi})",
    "{x}.clamp({y}, {z})",
    "{x}.clamp_min({y})",
)
EXTREMA = (
    "torch.maximum({x}, {y})",
    "torch.minimum({x}, {y})",
    "torch.fmax({x}, {y})",
    "torch.fmin({x}, {y})",
)
VIEW = (
    "{x}.transpose(0, -1)",
    "{x}.transpose({d}, {e})",
    "{x}.permute({perm})",
    "{x}.reshape(-1)",
    "{x}.reshape({x}.shape[0], -1)",
    "{x}.reshape(-1, {x}.shape[-1])",
    "{x}.flatten({d})",
    "{x}.view(-1)",
    "{x}.view({x}.shape[0], 1, -1)",
    "{x}.unsqueeze({d})",
    "{x}.unsqueeze(-1)",
    "{x}.squeeze()",
    "{x}.squeeze({d})",
    "{x}.expand(3, *{x}.shape)",
    "{x}.expand_as({y})",
    "{x}[None].expand(2, *{x}.shape)",
    "{x}[..., 1:]",
    "{x}[..., :-1]",
    "{x}[::2]",
    "{x}[1::3]",
    "{x}[..., ::2]",
    "{x}[..., 1:-1]",
    "{x}[-3:]",
    "{x}[:5]",
    "{x}[0]",
    "{x}[-1]",
    "{x}[..., 0]",
    "{x}.select({d}, -1)",
    "{x}.narrow({d}, 1, 1)",
    "{x}[:, None]",
    "{x}.mT",
    "{x}.movedim(0, -1)",
    "{x}.diagonal()",
    "{x}.diagonal(1, 0, -1)",
    "{x}.unbind({d})[0]",
    "{x}.unbind(0)[-1]",
    "{x}.chunk(2, {d})[1]",
    "{x}.split(2, {d})[0]",
    "{x}.split(2, {d})[-1]",
    "{x}.tensor_split(3, {d})[1]",
    "{x}.unfold({d}, 2, 1)",
    "{x}.unflatten({d}, (1, -1))",
    "{x}.detach()",
    "{x}.as_strided((2,), (1,))",
    "{x}.view_as({x})",
    "torch.broadcast_tensors({x}, {y})[0]",
)
MOVE = (
    "{x}.flip({d})",
    "{x}.flip(0, -1)",
    "{x}.roll(1, {d})",
    "{x}.roll(-2)",
    "{x}.roll((1, 2), (0, -1))",
    "{x}.rot90()",
    "{x}.contiguous()",
    "{x}.clone()",
    "{x}.repeat(2, *[1] * ({x}.dim() - 1))",
    "{x}.tile(2)",
    "{x}.repeat_interleave(2, {d})",
    "torch.cat([{x}, {y}], {d})",
    "torch.cat([{x}, {x}], {d})",
    "torch.cat([{x}, {y}, {x}], -1)",
    "torch.cat([{x}[..., :1], {x}[..., 1:]], -1)",
    "torch.cat([{x}, {x}.flip({d})], {d})",
    "torch.stack([{x}, {x}], {d})",
    "torch.stack([{x}, {y}], -1)",
    "F.pad({x}, (1, 2))",
    "F.pad({x}, (-1, 1), value=0.5)",
    "F.pad({x}, (0, 1, 2, 0), value=-1.0)",
    "{x}.tril()",
    "{x}.triu(1)",
    "{x}.tril(-1)",
    "torch.diag_embed({x})",
    "torch.meshgrid({x}.reshape(-1)[:4], {y}.reshape(-1)[:3], indexing='ij')[0]",
    "F.pad({x}[None], (1, 1), mode='replicate')[0]",
    "{x}.select_scatter({x}.select({d}, 0) * 2, {d}, -1)",
    "{x}.slice_scatter({x}[1:] + 1, 0, 1)",
)
NEW = (
    "torch.zeros_like({x})",
    "torch.ones_like({x}, dtype={dtype})",
    "torch.full_like({x}, {s})",
    "{x}.new_full({x}.shape, 2)",
    "torch.arange({x}.shape[0])",
    "torch.arange({x}.shape[-1], dtype={dtype})",
    "torch.arange(1, {x}.shape[0] + 1).float()",
    "torch.arange(0, 2 * {x}.shape[-1], 2)",
    "torch.eye({x}.shape[-1])",
    "torch.full((), {s})",
    "torch.tensor([1.0, 2.0, -0.0])",
    "torch.tensor({s})",
    "{x} * {x}.shape[0]",
    "{x} / {x}.numel()",
    "torch.linspace(0, 1, {x}.shape[-1])",
    "F.one_hot({i} % 5, 5)",
)
REDUCE_EXACT = (
    "{x}.amax({dims}, keepdim={k})",
    "{x}.amin({dims}, keepdim={k})",
    "{x}.max({d}, keepdim={k}).values",
    "{x}.max({d}).indices",
    "{x}.min({d}, keepdim={k}).indices",
    "{x}.max()",
    "{x}.min()",
    "{x}.argmax({d}, keepdim={k})",
    "{x}.argmin({d})",
    "{x}.argmax()",
    "{x}.any({d})",
    "{x}.any()",
    "{x}.all({d}, keepdim={k})",
    "{x}.all()",
    "({x} > 0).sum({dims})",
    "{x}.count_nonzero({d})",
    "{x}.aminmax(dim={d}).max",
    "{x}.sort({d}).values",
    "{x}.sort({d}, stable=True).indices",
    "{x}.topk(2, {d}).values",
    "{x}.cummax({d}).values",
)
REDUCE_INEXACT = (
    "{x}.sum({dims}, keepdim={k})",
    "{x}.sum()",
    "{x}.sum({d}, dtype=torch.float64)",
    "{x}.mean({dims}, keepdim={k})",
    "{x}.mean()",
    "{x}.var({dims}, keepdim={k})",
    "{x}.std({dims})",
    "{x}.var({d}, unbiased=False)",
    "{x}.var()",
    "torch.var_mean({x}.nan_to_num(), {d})[1]",  # eager's running mean of infinities depends on their order
    "{x}.prod({d}, keepdim={k})",
    "{x}.logsumexp({dims}, keepdim={k})",
    "{x}.norm()",
    "{x}.norm(dim={d}, keepdim={k})",
    "torch.linalg.vector_norm({x}, 1, {dims})",
    "torch.linalg.vector_norm({x}, 3, {d})",
    "torch.linalg.vector_norm({x}, float('inf'), {d})",
    "torch.linalg.vector_norm({x}, 0, {d})",
    "{x}.nansum({d})",
    "{x}.nanmean({d})",
    "{x}.cumsum({d})",
    "{x}.cumprod({d})",
    "{x}.logcumsumexp({d})",
    "{x}.softmax({d})",
    "{x}.softmax(-1)",
    "{x}.log_softmax({d})",
    "F.softmin({x}, {d})",
    "{x}.softmax(-1, dtype=torch.float32)",
    "F.layer_norm({x}, {x}.shape[-1:])",
    "F.layer_norm({x}, {x}.shape[-2:])",
    "F.layer_norm({x}, {x}.shape[-1:], {y}, {z})",
    "F.rms_norm({x}, {x}.shape[-1:])",
    "F.group_norm({x}[None], 1)[0]",
    "F.normalize({x}, dim={d})",
    "F.glu({x}[..., : {x}.shape[-1] // 2 * 2], -1)",
    "F.mse_loss({x}, {y})",
    "F.l1_loss({x}, {y})",
    "F.smooth_l1_loss({x}, {y})",
    "F.binary_cross_entropy_with_logits({x}, {y}.sigmoid())",
    "F.cross_entropy({x}, {i} % {x}.shape[1])",
    "F.cross_entropy({x}, {x}.argmax(1), reduction='none')",
    "F.nll_loss({x}, {i} % {x}.shape[1], reduction='sum')",
    "F.cosine_similarity({x}, {y}, {d})",
    "F.batch_norm({x}, None, None, training=True)",
    "F.avg_pool1d({x}, 2)",
    "F.max_pool1d({x}, 2)",
    "F.adaptive_avg_pool1d({x}, 2)",
    "F.interpolate({x}[None], scale_factor=2.0)",
)
INDEX_EXACT = (
    "F.embedding({i} % {x}.shape[0], {x})",
    "{x}[{i} % {x}.shape[0]]",
    "{x}[{i} % {x}.shape[0] - {x}.shape[0]]",
    "{x}[..., {i} % {x}.shape[-1]]",
    "{x}[:, {i} % {x}.shape[1]]",
    "{x}[{i} % {x}.shape[0], {j} % {x}.shape[1]]",
    "{x}[{i} % {x}.shape[0], :, {j} % {x}.shape[2]]",
    "{x}[{i} % {x}.shape[0], None]",
    "{x}.index_select({d}, {i}.reshape(-1) % {x}.shape[{d}])",
    "{x}.gather({d}, {i} % {x}.shape[{d}])",
    "{x}.gather(-1, {x}.argmax(-1, keepdim=True))",
    "torch.take_along_dim({x}, {x}.argmin({d}, keepdim=True), {d})",
    "{x}.take({i} % {x}.numel())",
    "{x}[[0, -1]]",
    "{x}[[1, 0, 1]]",
    "{x}[torch.tensor([0, 0])]",
    "{x}.scatter({d}, {i} % {x}.shape[{d}], 2)",
    "{x}.index_fill({d}, {i}.reshape(-1) % {x}.shape[{d}], -1)",
    "{x}.index_put(({i} % {x}.shape[0],), {x}.new_full((), 3))",
    "{x}[{x}.shape[0] - 1 - torch.arange({x}.shape[0])]",
    "{x}.masked_scatter({m}, {y})",
    "{x}.index_copy(0, torch.arange({x}.shape[0]), {y})",
)
INDEX_INEXACT = (
    "{x}.scatter_add({d}, {i} % {x}.shape[{d}], {y})",
    "{x}.scatter_add(0, {x}.argmax(0, keepdim=True), {x})",
    "{x}.index_add({d}, {i} % {x}.shape[{d}], {y})",
    "{x}.index_add(0, torch.zeros({y}.shape[0], dtype=torch.int64), {y}, alpha=2)",
    "{x}.index_put(({i} % {x}.shape[0],), {y}, accumulate=True)",
    "{x}.index_put(({i} % {x}.shape[0], {j} % {x}.shape[1]), {y}, accumulate=True)",
    "{x}.scatter_reduce({d}, {i} % {x}.shape[{d}], {y}, 'amax')",
    "{x}.scatter_reduce({d}, {i} % {x}.shape[{d}], {y}, 'sum', include_self=False)",
    "{x}.scatter_reduce({d}, {i} % {x}.shape[{d}], {y}, 'mean')",
    "torch.zeros(4, dtype={x}.dtype).index_add(0, {x}.reshape(-1).isnan().long(), {x}.reshape(-1))",
)
MATMUL = (
    "{x} @ {y}",
    "{x} @ {y}.mT",
    "{x}.mT @ {x}",
    "{x} @ {x}.mT",
    "F.linear({x}, {y})",
    "F.linear({x}, {y}, {z})",
    "torch.einsum('...ij,...kj->...ik', {x}, {y})",
    "torch.einsum('ij,kj->ki', {x}, {y})",
    "torch.outer({x}.reshape(-1)[:5], {y}.reshape(-1)[:3])",
    "torch.addmm({x}, {y}, {z}, beta=0.5, alpha=2)",
    "F.scaled_dot_product_attention({x}[None], {x}[None], {x}[None])",
    "F.conv1d({x}, {x}[:, :, :1])",
)
IN_PLACE = (
    "{x}.add_({y})",
    "{x}.mul_({s})",
    "{x}.sub_(1)",
    "{x}.copy_({y})",
    "{x}.zero_()",
    "{x}.fill_({s})",
    "{x}.clamp_({lo}, {hi})",
    "{x}.relu_()",
    "{x}.neg_()",
    "{x}.masked_fill_({m}, {s})",
    "{x}[0].add_(1)",
    "{x}[..., 0].mul_(2)",
    "{x}[1:].copy_({x}[:-1].clone())",
    "{x}[..., ::2].add_({y})",
    "{x}.t().add_({y})",
    "{x}.view(-1).add_(1)",
    "{x}.__setitem__(0, {s})",
    "{x}.__setitem__((..., -1), {y})",
    "{x}.__setitem__(slice(1, None, 2), {s})",
    "{x}.__setitem__({m}, {s})",
    "{x}.__setitem__({i} % {x}.shape[0], {s})",
    "{x}.__setitem__((..., slice(None, 2)), {x}[..., -2:].clone())",
    "{x}.transpose_(0, -1)",
    "{x}.squeeze_(0)",
    "{x}.unsqueeze_(0)",
    "{x}.diagonal().fill_({s})",
    "{x}.tril_()",
    "{x}.index_add_(0, {i} % {x}.shape[0], {y})",
    "{x}.unbind(0)[-1].add_({s})",
)
CAST = ("{x}.to({dtype})", "{x}.to({dtype})", "{x}.to({y}.dtype)", "{x}.float()", "{x}.half()")
TO_INTEGERS = ("{x}.long()", "{x}.int()", "{x}.to(torch.uint8)", "{x}.bool()")

# (templates, weight, are the results inexact)
KINDS: tuple[tuple[tuple[str, ...], int, bool], ...] = (
    (UNARY_EXACT, 6, False),
    (UNARY_INEXACT, 7, True),
    (BINARY_EXACT, 14, False),
    (BINARY_INEXACT, 4, True),
    (COMPARE, 4, False),
    (INTEGER, 6, False),
    (CHOICE, 5, False),
    (EXTREMA, 2, False),
    (VIEW, 16, False),
    (MOVE, 9, False),
    (NEW, 3, False),
    (REDUCE_EXACT, 6, False),
    (REDUCE_INEXACT, 12, True),
    (INDEX_EXACT, 7, False),
    (INDEX_INEXACT, 3, True),
    (MATMUL, 3, True),
    (IN_PLACE, 6, False),
    (CAST, 5, False),
    (TO_INTEGERS, 2, False),
)

SCALARS = ("0", "1", "2", "-3", "0.5", "-1.25", "2.0", "0.0", "-0.0", "1e-3", "True", "float('inf')", "100")
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool")


class NothingFits(Exception):
    """No value of the wanted kind exists."""


class Draw:
    """One draw; afterwards `used` names the operands.

    Args:
        rng: decides everything.
        values: the names that exist.
    """

    def __init__(self, rng: random.Random, values: dict[str, torch.Tensor]) -> None:
        self.rng = rng
        self.values = values
        self.used: list[str] = []
        self.in_place = False

    def expression(self) -> tuple[str, bool]:
        """Text, and whether its result is inexact."""
        templates, _, inexact = self.rng.choices(KINDS, [weight for _, weight, _ in KINDS])[0]
        self.in_place = templates is IN_PLACE
        template = self.rng.choice(templates)
        text = self.fill(template)
        to_integers = templates is TO_INTEGERS or self.integer_dtype or ".dtype" in template
        if to_integers and not all(_casts_to_integers(self.values[name]) for name in self.used):
            raise NothingFits
        return text, inexact

    def fill(self, template: str) -> str:
        rng = self.rng
        self.integer_dtype = False
        x = self.any() if "{x}" in template else ""
        rank = self.values[x].dim() if x else 1
        fields = {"x": x, "y": "", "z": "", "i": "", "j": "", "m": ""}
        for name, pick in (("y", self.like), ("z", self.like), ("i", self.integers), ("j", self.integers)):
            if f"{{{name}}}" in template:
                fields[name] = pick(x)
        if "{m}" in template:
            fields["m"] = self.mask(x)
        dtype = rng.choice(DTYPES)
        self.integer_dtype = "{dtype}" in template and dtype in ("int64", "int32", "uint8")
        low = rng.choice([-1, -0.5, 0, 0.25])
        numbers = {
            "s": rng.choice(SCALARS),
            "lo": low,
            "hi": low + rng.choice([0, 1, 1.5]),
            "d": rng.randint(-rank, max(rank - 1, 0)),
            "e": rng.randint(-rank, max(rank - 1, 0)),
            "k": rng.random() < 0.5,
            "dtype": f"torch.{dtype}",
            "perm": ", ".join(map(str, rng.sample(range(rank), rank))),
            "dims": self.dims(rank),
        }
        return template.format(**fields, **numbers)

    def dims(self, rank: int) -> str:
        count = self.rng.randint(1, max(rank, 1))
        return str(tuple(self.rng.sample(range(rank), min(count, rank))))

    def any(self) -> str:
        """Late values are likelier: functions become deep."""
        names = list(self.values)
        return self.use(names[-1 - min(int(self.rng.expovariate(0.4)), len(names) - 1)])

    def like(self, x: str) -> str:
        """A value that broadcasts with `x` if there is one, usually."""
        shape = self.values[x].shape if x else ()
        fitting = [name for name, value in self.values.items() if _broadcasts(value.shape, shape)]
        return self.use(self.rng.choice(fitting if self.rng.random() < 0.9 else list(self.values)))

    def integers(self, _x: str) -> str:
        kinds = (torch.int64, torch.int32)
        return self.use_of([name for name, value in self.values.items() if value.dtype in kinds])

    def mask(self, x: str) -> str:
        shape = self.values[x].shape if x else ()
        masks = [n for n, v in self.values.items() if v.dtype == torch.bool and _broadcasts(v.shape, shape)]
        return self.use_of(masks)

    def use_of(self, names: list[str]) -> str:
        if not names:
            raise NothingFits
        return self.use(self.rng.choice(names))

    def use(self, name: str) -> str:
        self.used.append(name)
        return name


def _broadcasts(first: torch.Size, second: torch.Size) -> bool:
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _casts_to_integers(value: torch.Tensor) -> bool:
    """Whether the cast to any integer is defined."""
    if not value.is_floating_point() or not value.numel():
        return True
    return bool(((value > -1) & (value < 200)).all())
