"""Faults that are known and not mended yet, each as the test that must pass once it is.

They are strict: a mended fault fails here until its mark is taken away.
"""

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.xfail(strict=True, reason="torch traces contiguous strides; eager's kernel keeps channels last")
def test_strides_of_an_unpooling_of_channels_last() -> None:
    x = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)

    torch._dynamo.reset()
    assert torch.compile(function, backend="kerf")(x).stride() == function(x).stride()
