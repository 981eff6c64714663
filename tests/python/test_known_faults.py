"""Faults that are known and not mended yet, each as the test that must pass once it is.

They are strict: a mended fault fails here until its mark is taken away.
"""

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.xfail(
    strict=True, reason="torch traces the operand's strides; eager's kernel gives contiguous ones"
)
def test_strides_of_a_batch_norm_of_a_transposed_operand() -> None:
    x = torch.randn(2, 3, 5, 4).transpose(-1, -2)

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, training=True)

    torch._dynamo.reset()
    assert torch.compile(function, backend="kerf")(x).stride() == function(x).stride()
