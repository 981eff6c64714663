"""Every Python test starts without compiled code and with one seed; all share tests/python's modules.

Tests compile what they test: the disk cache is off unless KERF_CACHE=1 says otherwise. Every pass is
verified.
"""

import os
import sys
from pathlib import Path

import kerf
import pytest
import torch

os.environ.setdefault("KERF_CACHE", "0")
os.environ.setdefault("KERF_VERIFY", "1")
sys.path.insert(0, str(Path(__file__).parent / "python"))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    kerf.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def cache_directory(tmp_path, monkeypatch):
    """The disk cache is on, in an empty directory of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KERF_CACHE", "1")
    monkeypatch.setenv("KERF_CACHE_DIR", str(folder))
    return folder
