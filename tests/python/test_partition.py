"""The cut of joint graphs: what is kept, checkpointing, arguments that are written to, what torch cuts."""

import kerf
import pytest
import torch
import torch.nn.functional as F
from compare import compare
from kerf import _core, partition
from kerf.backend import compile_graph
from torch import fx
from torch._subclasses import FakeTensorMode
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)


def _leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    kerf.reset()
    torch.manual_seed(0)


def _only() -> kerf.Partition:
    (only,) = kerf.partitions()
    return only


def _kept(result: torch.Tensor) -> list[tuple[int, ...]]:
    """Shapes of what the compiled region that computed `result` keeps."""
    node = result.grad_fn
    while "CompiledFunction" not in node.name():
        node = node.next_functions[0][0]
    return sorted(tuple(t.shape) for t in node.saved_tensors)


# What is kept


def test_pointwise_values_are_not_kept():
    x, w = _leaf(64, 32), _leaf(32, 48)
    y = torch.compile(lambda x, w: (torch.tanh(x @ w) * torch.sigmoid(x @ w)).sum(), backend="kerf")(x, w)
    assert _kept(y) == [(32, 48), (64, 32), (64, 48)]
    assert _only().by == "kerf"
    assert _only().kept_bytes == 4 * (64 * 48 + 64 * 32 + 32 * 48)  # x and w are plain arguments here
    y.backward()


@pytest.mark.parametrize("option", ["kerf", "default", "min_cut"])
def test_every_partitioner_gives_eagers_gradients(option):
    def function(x, w, b):
        h = F.layer_norm(F.gelu(x @ w + b), (48,))
        return torch.softmax(h, -1) * h.mean(0), h[:, ::2].exp()

    compare(function, _leaf(64, 32), _leaf(32, 48), _leaf(48), train=True, options={"partition": option})
    assert _only().by == option
    assert _only().reason == ""


def test_values_used_twice():
    def function(x):
        y = torch.sin(x)
        z = y * y + y
        return z, z.t() @ z, y

    compare(function, _leaf(5, 7), train=True)


def test_dynamic_sizes():
    def function(x, w):
        y = torch.relu(x @ w).view(x.shape[0] // 2, -1)
        return torch.cat([y, y * 2]).tanh() * x.shape[0]

    compare(function, _leaf(6, 8), _leaf(8, 4), train=True, dynamic=True, calls=[(_leaf(10, 8), _leaf(8, 4))])
    assert _only().by == "kerf"


def test_empty():
    compare(lambda x, w: torch.exp(x @ w).sum(0), _leaf(0, 4), _leaf(4, 3), train=True)


def test_integer_gradients_nowhere():
    compare(lambda x, i: (x[i] * i.unsqueeze(1), i + 1), _leaf(6, 3), torch.tensor([0, 5, 5]), train=True)


def test_autocast():
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
    x = torch.randn(4, 16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = torch.compile(model, backend="kerf")(x).float().square().mean()
    loss.backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        model(x).float().square().mean().backward()
    for ours, parameter in zip(got, model.parameters(), strict=True):
        torch.testing.assert_close(
            ours, parameter.grad, rtol=2**-6, atol=2**-6 * parameter.grad.abs().max().item()
        )


def test_equal_values_are_kept_once_but_equal_results_stay_apart():
    def function(x, w):
        first, second = torch.exp(x @ w), torch.exp(x @ w)
        return first, second, first * (x @ w), x + 0.0, x - 0.0, x + 1, x + True

    compare(function, _leaf(4, 3), _leaf(3, 5), train=True)
    torch._dynamo.reset()
    first, second, *_ = torch.compile(function, backend="kerf")(torch.randn(4, 3), _leaf(3, 5))
    with torch.no_grad():
        assert first.data_ptr() != second.data_ptr()
        assert torch.equal(first.clone(), second.clone())


def test_mere_copies_are_not_kept_beside_what_they_copy():
    def function(x, w, v):
        y = torch.relu(x @ w)
        return F.dropout(y, 0.0) @ v, y.clone(), x.clone()

    compare(function, _leaf(8, 4), _leaf(4, 16), _leaf(16, 2), train=True)
    torch._dynamo.reset()
    arguments = torch.randn(8, 4), _leaf(4, 16), _leaf(16, 2)
    compiled = torch.compile(lambda x, w, v: function(x, w, v)[0].sum(), backend="kerf")
    assert _kept(compiled(*arguments)) == [(8, 4), (8, 16), (16, 2)]


# Arguments that the forward pass writes to


class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 5))

    def forward(self, x):
        self.count.add_(1)
        return torch.tanh(self.weight * torch.exp(self.count / 2)) * x


def test_written_arguments_are_not_read_again():
    """torch's min-cut computes count + 1 once more in the backward pass, from the count after the call."""
    compare(Counted(), torch.randn(5), train=True, calls=[(torch.randn(5),)])


def test_batch_norm():
    compare(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.SiLU()),
            _leaf(2, 3, 8, 8), train=True)  # fmt: skip


# Checkpointing


class Block(torch.nn.Module):
    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 64), torch.nn.Linear(64, 16)
        self.dropout = dropout

    def forward(self, x):
        return x + self.second(F.dropout(F.gelu(self.first(x)), self.dropout))


class Blocks(torch.nn.Module):
    def __init__(self, use_checkpoint: bool, dropout: float = 0.0, **how):
        super().__init__()
        torch.manual_seed(1)
        self.blocks = torch.nn.ModuleList(Block(dropout) for _ in range(3))
        self.use_checkpoint = use_checkpoint
        self.how = how

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, **self.how) if self.use_checkpoint else block(x)
        return x


def test_checkpointed_regions_keep_their_inputs_only():
    compare(Blocks(True), _leaf(8, 16), train=True)
    torch._dynamo.reset()
    model = Blocks(True)
    kept = _kept(torch.compile(model, backend="kerf")(_leaf(8, 16)).sum())
    parameters = [tuple(p.shape) for p in model.parameters()]
    assert [shape for shape in kept if shape not in parameters] == [(8, 16)] * 3


def test_checkpointed_dropout_is_replayed():
    """The gradient is that of the mask the forward pass drew: a linear function shows which it was."""
    model = torch.nn.Linear(64, 64, bias=False)

    def function(x):
        y = checkpoint(lambda v: F.dropout(model(v), 0.5) * 3, x, use_reentrant=False)
        return y * y

    compiled = torch.compile(function, backend="kerf")
    for _ in range(3):
        x = _leaf(32, 64)
        result = compiled(x)
        result.sum().backward()
        with torch.no_grad():
            mask = (result != 0).to(torch.float32)
            expected = (2 * (model(x) * mask * 6) * 6 * mask) @ model.weight
            torch.testing.assert_close(x.grad, expected, rtol=1e-4, atol=1e-4)
    assert all(cut.by == "kerf" for cut in kerf.partitions())


def test_checkpointed_dropout_trains():
    model = Blocks(True, dropout=0.1)
    compiled = torch.compile(model, backend="kerf")
    x, target = torch.randn(32, 16), torch.randn(32, 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (compiled(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_selective_checkpoint():
    """Products are kept by the user's policy, so nothing wide is left to multiply again."""

    def policy(_context, op, *_args, **_kwargs):
        products = (torch.ops.aten.addmm.default, torch.ops.aten.mm.default)
        return CheckpointPolicy.MUST_SAVE if op in products else CheckpointPolicy.PREFER_RECOMPUTE

    def contexts():
        return create_selective_checkpoint_contexts(policy)

    compare(Blocks(True, context_fn=contexts), _leaf(8, 16), train=True)
    assert all(cut.by == "kerf" for cut in kerf.partitions())


# When the cut is not ours


def test_effects_are_cut_by_torch():
    @torch.library.custom_op("kerf_test::note", mutates_args=())
    def note(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    note.register_fake(torch.empty_like)
    note.register_autograd(lambda _context, grad: grad)
    torch.library._register_effectful_op("kerf_test::note", torch.library.EffectType.ORDERED)
    try:
        compare(lambda x: torch.sin(note(torch.exp(x))), _leaf(4), train=True)
    finally:
        torch.library._register_effectful_op("kerf_test::note", None)
    assert _only().by == "default"
    assert _only().reason == "an operator with effects"


def test_another_torch_is_cut_by_torch(monkeypatch):
    monkeypatch.delattr(partition.partitioners, "_extract_fwd_bwd_modules")
    gm = torch.fx.symbolic_trace(lambda x: x)
    with pytest.raises(partition.NotDescribable, match="splits joint graphs otherwise"):
        partition._split(gm, [], [], 1)


def test_constraints_are_reported():
    joint = _core.JointGraph()
    source, form = _core.JointSource, _core.JointForm
    joint.add(source.argument, form.tensor, "", [], 16, 0, -1)
    joint.add(source.tangent, form.tensor, "", [], 16, 0, -1)
    joint.add(source.call, form.other, "", [0], 0, 0, -1)
    joint.add(source.call, form.tensor, "aten.mul.Tensor", [1, 2], 16, 0, -1)
    joint.forward_outputs, joint.backward_outputs = [2], [3]
    assert "neither kept nor computed again" in joint.cut()
    with pytest.raises(kerf.InternalError, match="which is not before it"):
        joint.add(source.call, form.tensor, "aten.mul.Tensor", [9], 16, 0, -1)


# Recipes


class ConvNet(torch.nn.Module):
    def __init__(self, activation, affine: bool = True):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.second = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 4, 1)
        self.norm, self.last = torch.nn.BatchNorm2d(8, affine=affine), torch.nn.BatchNorm2d(4)
        self.activation = activation
        self.register_buffer("wave", torch.arange(49.0).cos().reshape(7, 7))

    def forward(self, x):
        # The sum of what a batch norm gives is constant: its gradient would be noise.
        return self.last(self.second(self.activation(self.norm(self.first(x))))) * self.wave


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("activation", [F.silu, F.hardswish, F.relu, lambda v: v * torch.sigmoid(v) + v])
def test_batch_norms_are_computed_again_from_their_statistics(activation, affine):
    compare(ConvNet(activation, affine), _leaf(2, 3, 9, 9), train=True, calls=[(_leaf(2, 3, 9, 9),)])
    torch._dynamo.reset()
    kept = _kept(torch.compile(ConvNet(activation, affine), backend="kerf")(_leaf(2, 3, 9, 9)).sum())
    assert kept.count((2, 8, 7, 7)) == 2  # the convolution's result, and the input of the next one
    assert kept.count((4,)) == 3  # weight, mean and rstd of the last norm, but no running statistics
    assert all(cut.by == "kerf" for cut in kerf.partitions())


# Dropout


@pytest.mark.parametrize("dynamic", [False, True])
def test_dropout_keeps_a_seed_instead_of_a_mask(dynamic):
    def function(x, w):
        return torch.sin(F.dropout(x @ w, 0.25))

    x, w = _leaf(64, 32), _leaf(32, 48)
    result = torch.compile(function, backend="kerf", dynamic=dynamic)(x, w)
    kinds = sorted((str(t.dtype), tuple(t.shape)) for t in result.grad_fn.saved_tensors)
    assert kinds == [
        (f"torch.{d}", s)
        for d, s in (("float32", (32, 48)), ("float32", (64, 32)), ("float32", (64, 48)), ("int64", ()))
    ]
    result.sum().backward()
    with torch.no_grad():
        product = x @ w
        mask = (result != 0).float() / 0.75
        torch.testing.assert_close(w.grad, x.T @ (torch.cos(product * mask) * mask), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(7,), (3, 5, 1000), (0, 4)])
def test_masks_are_equal_compiled_and_not(shape):
    """A forward graph may be compiled while its backward graph runs as torch runs it."""
    gm = fx.symbolic_trace(lambda seed: torch.ops.kerf.dropout_mask.default(seed, 3, list(shape), 0.3))
    seed = torch.ops.kerf.draw_seed.default()
    with FakeTensorMode() as mode:
        for node in gm.graph.nodes:
            node.meta["val"] = (
                mode.from_tensor(seed) if node.op == "placeholder" else torch.empty(shape, dtype=torch.bool)
            )
    gm.graph.output((next(n for n in gm.graph.nodes if n.op == "call_function"),))
    gm.graph.erase_node(next(n for n in gm.graph.nodes if n.op == "output"))
    (compiled,) = compile_graph(gm)([seed])
    plain = torch.ops.kerf.dropout_mask.default(seed, 3, list(shape), 0.3)
    assert torch.equal(compiled, plain)
    if plain.numel() > 1000:
        assert abs(plain.float().mean().item() - 0.7) < 0.02


def test_masks_of_one_step_differ_and_repeat_with_the_seed():
    def function(x):
        return F.dropout(x, 0.5), F.dropout(x, 0.5)

    compiled = torch.compile(function, backend="kerf")
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(3)
    first, second = compiled(x)
    third, _ = compiled(x)
    torch.manual_seed(3)
    again, _ = compiled(x)
    assert torch.equal(first, again)
    assert 400 < (first != second).sum() < 600
    assert 400 < (first != third).sum() < 600
    first.sum().backward()
    assert torch.equal(x.grad, first.detach())
