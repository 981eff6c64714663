"""FLUX blocks at a small size: `kerf npu-check tests/npu_models/flux.py --training` (.ci/npu)."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import flux_blocks  # noqa: E402

torch.manual_seed(0)
model = flux_blocks.FluxBlocks(flux_blocks.small())
inputs = flux_blocks.example_inputs(flux_blocks.small())
