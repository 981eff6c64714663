"""Transformer blocks in the style of FLUX: two streams (text, image) with joint attention, then one stream.

The sizes of the real model are those of `FluxConfig()`; `small()` is the same structure for tests.
"""

import dataclasses

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclasses.dataclass(frozen=True)
class FluxConfig:
    """Sizes: heads of `head_dim`, tokens of each stream, blocks of each kind."""

    heads: int = 24
    head_dim: int = 128
    text_tokens: int = 512
    image_tokens: int = 4096
    double_blocks: int = 1
    single_blocks: int = 1

    @property
    def width(self) -> int:
        return self.heads * self.head_dim


def small() -> FluxConfig:
    """The structure at a size that tests can compute."""
    return FluxConfig(heads=3, head_dim=16, text_tokens=6, image_tokens=10)


class Modulation(nn.Module):
    """Shift, scale and gate per sublayer from the conditioning vector: [batch, 1, width] each."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.linear = nn.Linear(width, count * width)

    def forward(self, vector: Tensor) -> tuple[Tensor, ...]:
        return self.linear(F.silu(vector))[:, None, :].chunk(self.count, dim=-1)


class HeadNorm(nn.Module):
    """RMS norm over the channels of a head."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary embedding of x [batch, heads, tokens, dim]: pairs (2i, 2i+1) turned by angles, which are
    (cosine, sine) in [tokens, dim / 2, 2].
    """
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    cos, sin = angles[..., 0], angles[..., 1]
    first, second = pairs[..., 0], pairs[..., 1]
    return torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1).flatten(-2)


def split_heads(qkv: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """[batch, tokens, 3 * width] to three of [batch, heads, tokens, dim]."""
    batch, tokens, width = qkv.shape
    parts = qkv.view(batch, tokens, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]


def attention(q: Tensor, k: Tensor, v: Tensor, angles: Tensor) -> Tensor:
    """Joint attention; [batch, tokens, width]."""
    x = F.scaled_dot_product_attention(rotate(q, angles), rotate(k, angles), v)
    return x.transpose(1, 2).flatten(2)


class Stream(nn.Module):
    """One of the two streams of a double block: its projections, norms and feed-forward."""

    def __init__(self, config: FluxConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.modulation = Modulation(width, 6)
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width)
        self.query_norm = HeadNorm(config.head_dim)
        self.key_norm = HeadNorm(config.head_dim)
        self.projection = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def heads_of(self, x: Tensor, shift: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = split_heads(self.qkv((1 + scale) * self.norm1(x) + shift), self.heads)
        return self.query_norm(q), self.key_norm(k), v

    def finish(self, x: Tensor, attended: Tensor, parts: tuple[Tensor, ...]) -> Tensor:
        gate1, shift2, scale2, gate2 = parts
        x = x + gate1 * self.projection(attended)
        return x + gate2 * self.mlp((1 + scale2) * self.norm2(x) + shift2)


class DoubleBlock(nn.Module):
    """Text and image streams with weights of their own and one attention over both."""

    def __init__(self, config: FluxConfig) -> None:
        super().__init__()
        self.text = Stream(config)
        self.image = Stream(config)

    def forward(self, text: Tensor, image: Tensor, vector: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
        of_text, of_image = self.text.modulation(vector), self.image.modulation(vector)
        heads_text = self.text.heads_of(text, *of_text[:2])
        heads_image = self.image.heads_of(image, *of_image[:2])
        q, k, v = (torch.cat(pair, dim=2) for pair in zip(heads_text, heads_image, strict=True))
        attended = attention(q, k, v, angles)
        tokens = text.shape[1]
        return (
            self.text.finish(text, attended[:, :tokens], of_text[2:]),
            self.image.finish(image, attended[:, tokens:], of_image[2:]),
        )


class SingleBlock(nn.Module):
    """One stream; a linear makes queries, keys, values and the input of the feed-forward together."""

    def __init__(self, config: FluxConfig) -> None:
        super().__init__()
        width = config.width
        self.heads, self.width = config.heads, width
        self.modulation = Modulation(width, 3)
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.linear1 = nn.Linear(width, 7 * width)
        self.linear2 = nn.Linear(5 * width, width)
        self.query_norm = HeadNorm(config.head_dim)
        self.key_norm = HeadNorm(config.head_dim)

    def forward(self, x: Tensor, vector: Tensor, angles: Tensor) -> Tensor:
        shift, scale, gate = self.modulation(vector)
        both = self.linear1((1 + scale) * self.norm(x) + shift)
        qkv, mlp = both.split((3 * self.width, 4 * self.width), dim=-1)
        q, k, v = split_heads(qkv, self.heads)
        attended = attention(self.query_norm(q), self.key_norm(k), v, angles)
        return x + gate * self.linear2(torch.cat((attended, F.gelu(mlp, approximate="tanh")), dim=2))


class FluxBlocks(nn.Module):
    """Double blocks, then single blocks over the streams one after the other; returns the image tokens."""

    def __init__(self, config: FluxConfig) -> None:
        super().__init__()
        self.double_stream = nn.ModuleList(DoubleBlock(config) for _ in range(config.double_blocks))
        self.single_stream = nn.ModuleList(SingleBlock(config) for _ in range(config.single_blocks))

    def forward(self, text: Tensor, image: Tensor, vector: Tensor, angles: Tensor) -> Tensor:
        for block in self.double_stream:
            text, image = block(text, image, vector, angles)
        x = torch.cat((text, image), dim=1)
        for block in self.single_stream:
            x = block(x, vector, angles)
        return x[:, text.shape[1] :]


def example_inputs(config: FluxConfig, batch: int = 1, device: str = "cpu") -> tuple[Tensor, ...]:
    """Text, image, conditioning vector and angles (cosine, sine) for FluxBlocks."""
    generator = None if device == "meta" else torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    tokens = config.text_tokens + config.image_tokens
    phase = torch.arange(tokens, device=device)[:, None] * torch.linspace(
        1.0, 0.01, config.head_dim // 2, device=device
    )
    return (
        normal(batch, config.text_tokens, config.width),
        normal(batch, config.image_tokens, config.width),
        normal(batch, config.width),
        torch.stack((phase.cos(), phase.sin()), dim=-1),
    )
