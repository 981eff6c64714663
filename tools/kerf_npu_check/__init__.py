"""Checks of Ascend kernels without a card (docs/npu_check.md); workers/ runs in an environment of its own."""
