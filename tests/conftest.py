"""Every Python test starts without compiled code and with one seed; all share tests/python's modules."""

import sys
from pathlib import Path

import kerf
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "python"))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    kerf.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
