"""Small models of several families train two steps as in eager, judged by a float64 referee.

The second step's loss depends on the first one's gradients and on nothing else that could differ.
"""

import copy
import sys
from collections.abc import Callable
from pathlib import Path

import kerf
import pytest
import torch
import torch.nn.functional as F
import transformers
from numeric import assert_close
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from models import Workload, build, gpt2, llama, vit  # noqa: E402


def deberta() -> Workload:
    """Attention to relative positions: gathers, and scatters in the backward pass."""
    config = transformers.DebertaV2Config(
        vocab_size=300,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        conv_kernel_size=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    ids = torch.randint(1, 300, (2, 20))
    inputs = {"input_ids": ids, "attention_mask": (ids > 30).long()}
    model = transformers.DebertaV2ForMaskedLM(config)
    return Workload(model.train(), inputs, lambda call, inputs: call(**inputs, labels=ids).loss)


def mamba() -> Workload:
    """A state space: a recurrence over the sequence, unrolled, and causal convolutions."""
    config = transformers.MambaConfig(
        vocab_size=300, hidden_size=32, state_size=4, num_hidden_layers=1, time_step_rank=4, use_cache=False
    )
    ids = torch.randint(1, 300, (2, 6))
    model = transformers.MambaForCausalLM(config)
    return Workload(model.train(), {"input_ids": ids}, lambda call, inputs: call(**inputs, labels=ids).loss)


def speech() -> Workload:
    """Strided convolutions over sound, weight norm, attention, CTC loss in eager."""
    config = transformers.Wav2Vec2Config(
        vocab_size=16,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        conv_dim=(16, 16),
        conv_stride=(5, 4),
        conv_kernel=(10, 4),
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
        apply_spec_augment=False,
        layerdrop=0.0,
        **dict.fromkeys(("hidden_dropout", "attention_dropout", "activation_dropout"), 0.0),
        **dict.fromkeys(("feat_proj_dropout", "final_dropout"), 0.0),
    )
    labels = torch.randint(1, 16, (2, 5))

    def loss(call, inputs):
        scores = F.log_softmax(call(**inputs).logits, -1).transpose(0, 1)
        return F.ctc_loss(scores, labels, [scores.shape[0]] * 2, [5, 5])

    model = transformers.Wav2Vec2ForCTC(config)
    model.freeze_feature_encoder()  # else the model marks a tensor, which breaks the graph
    return Workload(model.train(), {"input_values": torch.randn(2, 400)}, loss)


class _Unet(nn.Module):
    """A step down and up with a skip, as denoisers and segmenters have it."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
        self.norm, self.up = nn.GroupNorm(4, 16), nn.ConvTranspose2d(16, 8, 2, 2)
        self.time, self.leave = nn.Linear(8, 16), nn.Conv2d(24, 12, 3, padding=1)
        self.batch_norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        skip = F.silu(self.batch_norm(self.enter(x)))
        angles = time[:, None] * torch.arange(4, dtype=x.dtype).exp()
        inside = self.down(skip) + self.time(torch.cat([angles.sin(), angles.cos()], 1))[:, :, None, None]
        inside = F.silu(self.norm(inside))
        wide = F.interpolate(inside[:, :8], scale_factor=2, mode="bilinear")
        return F.pixel_shuffle(self.leave(torch.cat([skip, self.up(inside), wide], 1)), 2)


def unet() -> Workload:
    target = torch.randn(2, 3, 24, 20)
    inputs = {"x": torch.randn(2, 3, 12, 10), "time": torch.tensor([0.1, 0.7])}

    def loss(call, inputs):
        return F.smooth_l1_loss(call(**inputs), target.to(inputs["x"].dtype))

    return Workload(_Unet().train(), inputs, loss)


class _Graph(nn.Module):
    """Attention over edges and sums at their ends."""

    def __init__(self) -> None:
        super().__init__()
        self.feature, self.source, self.target = nn.Linear(8, 16), nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        here, there = edges
        h = self.feature(x)
        score = F.leaky_relu((self.source(h)[here] + self.target(h)[there]).squeeze(1), 0.2)
        least = torch.full((x.shape[0],), -torch.inf, dtype=x.dtype)
        share = torch.exp(score - least.scatter_reduce(0, there, score.detach(), "amax")[there])
        total = torch.zeros(x.shape[0], dtype=x.dtype).index_add(0, there, share)
        return torch.zeros_like(h).index_add(0, there, h[here] * (share / total[there])[:, None])


def graph() -> Workload:
    labels = torch.randint(0, 16, (20,))
    inputs = {"x": torch.randn(20, 8), "edges": torch.randint(0, 20, (2, 60))}
    return Workload(_Graph().train(), inputs, lambda call, inputs: F.cross_entropy(call(**inputs), labels))


FAMILIES: dict[str, Callable[[], Workload]] = {
    "gpt2": lambda: gpt2(layers=2, hidden=64, length=24),
    "llama": lambda: llama(layers=2, hidden=64, length=24),
    "vit": lambda: vit(layers=2, hidden=64, size=64),
    "deberta": deberta,
    "mamba": mamba,
    "speech": speech,
    "unet": unet,
    "graph": graph,
}


def _train(
    workload: Workload, backend: str | None, dtype: torch.dtype, autocast: bool = False
) -> dict[str, torch.Tensor]:
    """Both losses, and the gradients of the first step."""
    model = copy.deepcopy(workload.model).to(dtype)
    inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in workload.inputs.items()}
    call = torch.compile(model, backend=backend) if backend else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    seen = {}
    for step in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = workload.loss(call, inputs)
        loss.backward()
        seen[f"loss {step}"] = loss.detach()
        if step == 0:
            seen |= {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
    return seen


@pytest.mark.parametrize("family", FAMILIES)
def test_train(family):
    workload = build(FAMILIES[family])
    eager = _train(workload, None, torch.float32)
    ours = _train(workload, "kerf", torch.float32)
    assert_close(ours, [eager], _train(workload, None, torch.float64))
    kinds = [c.kind for c in kerf.compilations()]
    assert kinds == ["forward", "backward"]
    assert all(c.kernels for c in kerf.compilations())


@pytest.mark.parametrize("family", ["llama", "vit", "deberta", "unet"])
def test_train_under_autocast(family):
    """Products and convolutions in bf16, norms of several kinds in f32."""
    workload = build(FAMILIES[family])
    eager = _train(workload, None, torch.float32, autocast=True)
    ours = _train(workload, "kerf", torch.float32, autocast=True)
    assert_close(ours, [eager], _train(workload, None, torch.float64))
