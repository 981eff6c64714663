"""The models that Kerf is measured on, built from configurations with seeded weights: nothing is downloaded.

Language models come from transformers, image models from timm. Dropout and stochastic depth are 0, so that
all backends compute the same numbers.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Call = Callable[..., Any]  # a model, or what torch.compile made of it


@dataclasses.dataclass
class Workload:
    """A model with one batch.

    Attributes:
        model: in training mode.
        inputs: keyword arguments of a call.
        loss: loss(call, inputs) calls the model once and returns a scalar.
    """

    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    loss: Callable[[Call, dict[str, torch.Tensor]], torch.Tensor]


def _tokens(vocabulary: int, batch: int, length: int) -> torch.Tensor:
    return torch.randint(1, vocabulary, (batch, length))


def _language(model: torch.nn.Module, inputs: dict[str, torch.Tensor], labels: torch.Tensor) -> Workload:
    """transformers computes the loss inside the model, so that it is compiled with it."""

    def loss(call: Call, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return call(**inputs, labels=labels).loss

    return Workload(model.train(), inputs, loss)


def bert(
    layers: int = 4, hidden: int = 256, batch: int = 2, length: int = 128, vocabulary: int = 30522
) -> Workload:
    """Masked language model; the second half of the batch is padded at its end."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * hidden,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    ids = _tokens(config.vocab_size, batch, length)
    mask = torch.ones_like(ids)
    mask[batch // 2 :, -length // 4 :] = 0
    labels = torch.where((torch.rand(batch, length) < 0.15) & (mask == 1), ids, -100)
    inputs = {"input_ids": ids, "attention_mask": mask}
    return _language(transformers.BertForMaskedLM(config), inputs, labels)


def gpt2(
    layers: int = 4, hidden: int = 256, batch: int = 2, length: int = 128, vocabulary: int = 50257
) -> Workload:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=vocabulary,
        n_embd=hidden,
        n_layer=layers,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
    )
    ids = _tokens(config.vocab_size, batch, length)
    model = transformers.GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # else transformers warns in the first call, which breaks the graph
    return _language(model, {"input_ids": ids}, ids)


def _decoder(family: str, layers: int, hidden: int, batch: int, length: int, vocabulary: int) -> Workload:
    """A decoder with rotary positions, RMS norm, gated MLP and grouped keys."""
    import transformers

    config = getattr(transformers, f"{family}Config")(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=hidden // 8,
        attention_dropout=0.0,
        use_cache=False,
    )
    ids = _tokens(config.vocab_size, batch, length)
    return _language(getattr(transformers, f"{family}ForCausalLM")(config), {"input_ids": ids}, ids)


def qwen3(
    layers: int = 4, hidden: int = 512, batch: int = 2, length: int = 128, vocabulary: int = 8192
) -> Workload:
    return _decoder("Qwen3", layers, hidden, batch, length, vocabulary)


def llama(
    layers: int = 4, hidden: int = 512, batch: int = 2, length: int = 128, vocabulary: int = 8192
) -> Workload:
    return _decoder("Llama", layers, hidden, batch, length, vocabulary)


def t5(
    layers: int = 2, hidden: int = 256, batch: int = 2, length: int = 64, vocabulary: int = 32128
) -> Workload:
    import transformers

    config = transformers.T5Config(
        vocab_size=vocabulary,
        d_model=hidden,
        d_kv=hidden // 4,
        d_ff=4 * hidden,
        num_layers=layers,
        num_decoder_layers=layers,
        num_heads=4,
        dropout_rate=0.0,
        use_cache=False,
    )
    source, target = (_tokens(config.vocab_size, batch, length) for _ in range(2))
    start = torch.full((batch, 1), config.pad_token_id)
    inputs = {"input_ids": source, "decoder_input_ids": torch.cat([start, target[:, :-1]], 1)}
    return _language(transformers.T5ForConditionalGeneration(config), inputs, target)


def vit(layers: int = 4, hidden: int = 256, batch: int = 2, size: int = 224, classes: int = 1000) -> Workload:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * hidden,
        image_size=size,
        num_labels=classes,
        problem_type="single_label_classification",  # else set in the first call: compiled twice
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    inputs = {"pixel_values": torch.randn(batch, 3, size, size)}
    model = transformers.ViTForImageClassification(config)
    return _language(model, inputs, torch.randint(0, config.num_labels, (batch,)))


def timm_model(name: str, batch: int = 2, size: int = 224) -> Workload:
    """An image classifier of timm; the loss is computed outside the model, in eager."""
    from timm_import import timm

    model = timm.create_model(name, drop_rate=0.0, drop_path_rate=0.0).train()
    labels = torch.randint(0, 1000, (batch,))

    def loss(call: Call, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return F.cross_entropy(call(**inputs), labels)

    return Workload(model, {"x": torch.randn(batch, 3, size, size)}, loss)


MODELS: dict[str, Callable[[], Workload]] = {
    "bert": bert,
    "gpt2": gpt2,
    "qwen3": qwen3,
    "llama": llama,
    "t5": t5,
    "vit": vit,
    "resnet50": lambda: timm_model("resnet50"),
    "mobilenetv3": lambda: timm_model("mobilenetv3_large_100"),
    "convnextv2": lambda: timm_model("convnextv2_nano"),
    "swin": lambda: timm_model("swin_tiny_patch4_window7_224"),
    "efficientnet": lambda: timm_model("efficientnet_b0"),
}


def build(make: Callable[[], Workload], seed: int = 0) -> Workload:
    """`make()` with weights and batch of `seed`."""
    torch.manual_seed(seed)
    return make()
