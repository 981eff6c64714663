"""Softmax, norms, activations and transposes at sizes with tails, in f32 and bf16; for .ci/npu."""

import torch
from torch.nn import functional as F


def model(x, y, weight, bias, short):
    rows = torch.softmax(x, -1) + F.log_softmax(y, -1)
    normed = F.layer_norm(rows, (211,), weight, bias) * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
    turned = F.gelu(normed.transpose(0, 1).contiguous(), approximate="tanh")
    joined = torch.cat((turned, F.silu(y.T)), dim=1).sum(0)
    padded = F.pad(short, (3, 2)).float().tanh()
    return joined, turned.detach().amax(-1), padded, torch.where(x > 0, x, y * 2)


torch.manual_seed(0)
inputs = [torch.randn(1037, 211), torch.randn(1037, 211), torch.randn(211), torch.randn(211)]
inputs = [t.requires_grad_() for t in inputs] + [torch.randn(130, 67, dtype=torch.bfloat16)]
