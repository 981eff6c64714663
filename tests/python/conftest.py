"""Every test starts without compiled code and with the same seed."""

import kerf
import pytest
import torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    kerf.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
