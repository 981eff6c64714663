"""BERT trains and infers as in eager, judged by a float64 referee."""

import copy

import kerf
import pytest
import torch
import transformers
from numeric import assert_close

TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
FOUR_LAYERS = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}


def _model(sizes: dict, dropout: float = 0.0) -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=1000, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, **sizes
    )
    return transformers.BertForMaskedLM(config).train()


def _batch(seed: int, batch: int = 2, length: int = 32) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 1000, (batch, length), generator=generator)
    labels = torch.where(torch.rand(batch, length, generator=generator) < 0.3, ids, -100)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def _gradients(model: torch.nn.Module, call, batch: dict) -> dict[str, torch.Tensor]:
    """Loss, logits and the gradient of every parameter."""
    model.zero_grad()
    out = call(**batch)
    out.loss.backward()
    tensors = {"loss": out.loss.detach(), "logits": out.logits.detach()}
    return tensors | {name: p.grad.clone() for name, p in model.named_parameters()}


def _eager_runs(model: torch.nn.Module, batch: dict) -> list[dict[str, torch.Tensor]]:
    """One and two threads: eager's own spread."""
    threads = torch.get_num_threads()
    try:
        runs = []
        for count in (1, 2):
            torch.set_num_threads(count)
            runs.append(_gradients(model, model, batch))
    finally:
        torch.set_num_threads(threads)
    return runs


@pytest.mark.parametrize("sizes", [TINY, FOUR_LAYERS], ids=["tiny", "four_layers"])
def test_train(sizes):
    """Five steps of AdamW; each step's gradients are judged on the parameters that eager has then."""
    eager = _model(sizes)
    ours, referee = copy.deepcopy(eager), copy.deepcopy(eager).double()
    compiled = torch.compile(ours, backend="kerf")
    optimizer = torch.optim.AdamW(eager.parameters(), lr=1e-3)
    for step in range(5):
        state = eager.state_dict()
        ours.load_state_dict(state)
        referee.load_state_dict(state)
        batch = _batch(step)
        runs = _eager_runs(eager, batch)
        assert_close(_gradients(ours, compiled, batch), runs, _gradients(referee, referee, batch))
        optimizer.step()
    kinds = [c.kind for c in kerf.compilations()]
    assert kinds == ["forward", "backward"]


def test_train_alone():
    """The compiled model's own trajectory ends where eager's does: the loss of the last of five steps."""
    batch = _batch(0)
    losses = {}
    for name, dtype in (("eager", torch.float32), ("kerf", torch.float32), ("referee", torch.float64)):
        model = _model(TINY).to(dtype)
        call = torch.compile(model, backend="kerf") if name == "kerf" else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(5):
            optimizer.zero_grad()
            loss = call(**batch).loss
            loss.backward()
            optimizer.step()
        losses[name] = loss.item()
    assert losses["eager"] < 6.9
    error = abs(losses["eager"] - losses["referee"])
    assert (
        abs(losses["kerf"] - losses["referee"])
        <= 4 * error + 64 * torch.finfo(torch.float32).eps * losses["referee"]
    )


def test_train_with_dropout():
    """Random values are Kerf's own, so the loss is not compared: it falls, and repeats with the seed."""

    def train() -> list[float]:
        torch._dynamo.reset()
        model = _model(TINY, dropout=0.1)
        compiled = torch.compile(model, backend="kerf")
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        batch, losses = _batch(0), []
        for _ in range(8):
            optimizer.zero_grad()
            loss = compiled(**batch).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    losses = train()
    assert losses[-1] < losses[0] - 0.5
    assert train() == losses


def test_train_with_dropout_of_eager():
    """With fallback_random all three draw the same masks, in float64 too: every step is judged as usual."""
    eager = _model(TINY, dropout=0.1)
    ours, referee = copy.deepcopy(eager), copy.deepcopy(eager).double()
    compiled = torch.compile(ours, backend="kerf", options={"fallback_random": True})
    optimizer = torch.optim.AdamW(eager.parameters(), lr=1e-3)
    for step in range(5):
        ours.load_state_dict(eager.state_dict())
        referee.load_state_dict(eager.state_dict())
        runs, states = [], []
        for model, call in ((referee, referee), (ours, compiled), (eager, eager)):
            torch.manual_seed(step)
            runs.append(_gradients(model, call, _batch(step)))
            states.append(torch.get_rng_state())
        assert all(torch.equal(state, states[-1]) for state in states)
        assert_close(runs[1], [runs[2]], runs[0])
        optimizer.step()


@pytest.mark.parametrize("dynamic", [False, True])
def test_infer(dynamic):
    model = _model(TINY).eval()
    referee = copy.deepcopy(model).double()
    compiled = torch.compile(model, backend="kerf", dynamic=dynamic)
    with torch.no_grad():
        for length in (32, 17):
            batch = _batch(1, length=length)
            results = [{"logits": call(**batch).logits} for call in (compiled, model, referee)]
            assert_close(results[0], [results[1]], results[2])
