"""The disk cache when its directory is damaged, unusable, turned off, or shared by processes."""

import json
import logging
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import kerf
import pytest
import torch
from fresh_start import check, gradients, normal

pytestmark = pytest.mark.usefixtures("cache_directory")


# Faults of the directory


def messages(caplog):
    return [record.message for record in caplog.records if record.name == "kerf"]


def entries(cache_directory, traces):
    found = [path for path in cache_directory.iterdir() if path.name.startswith("trace") == traces]
    assert found
    return found


def middle_flipped(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize("traces", [False, True])
@pytest.mark.parametrize(
    "damage", [middle_flipped, lambda data: data[:-3], lambda _: b"", lambda d: b"x" * 99]
)
def test_damaged_entries_are_rebuilt(cache_directory, caplog, traces, damage):
    def function(x):
        return torch.exp(x).sum(0) * 2

    def make():
        return (normal(6, 5, grad=True),)

    gradients(function, make, "traced")
    for path in entries(cache_directory, traces):
        path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING, "kerf"):
        gradients(function, make, "plans" if traces else "traced")
    assert len(messages(caplog)) == (1 if traces else 2)
    assert all("is damaged: ignored, compiling again" in message for message in messages(caplog))
    caplog.clear()
    gradients(function, make, "warm")
    assert not messages(caplog)


def test_missing_plans_are_rebuilt(cache_directory):
    def function(x):
        return torch.exp(x).sum(0) * 2

    check(function, lambda: (normal(6, 5),), "traced")
    for path in entries(cache_directory, traces=False):
        path.unlink()
    check(function, lambda: (normal(6, 5),), "traced")
    check(function, lambda: (normal(6, 5),), "warm")


def test_a_directory_that_cannot_be_used(cache_directory, caplog):
    cache_directory.write_text("a file")
    with caplog.at_level(logging.WARNING, "kerf"):
        for factor in (2, 3):
            check(lambda x, factor=factor: torch.exp(x) * factor, lambda: (normal(4),), "traced")
    assert [message.partition(" (")[0] for message in messages(caplog)] == ["the compile cache does not work"]


def mount(*arguments):
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(cache_directory):
    """The cache directory is a file system of its own, of 256 KiB."""
    if shutil.which("mount") is None:
        pytest.skip("there is no mount")
    cache_directory.mkdir()
    mount("-t", "tmpfs", "-o", "size=256k", "tmpfs", str(cache_directory))
    yield cache_directory
    subprocess.run(["umount", str(cache_directory)], check=True)


def gradients_of_multiple(factor, how):
    gradients(lambda x: torch.exp(x).sum(0) * factor, lambda: (normal(6, 5, grad=True),), how)


def assert_goes_on(caplog, problem):
    """What lies on the disk is used, what does not is compiled, and one warning names the problem."""
    with caplog.at_level(logging.WARNING, "kerf"):
        gradients_of_multiple(2, "warm")
        assert not messages(caplog)
        for factor in (3, 4, 4):
            gradients_of_multiple(factor, "traced")
    assert len(messages(caplog)) == 1
    assert "the compile cache does not work" in messages(caplog)[0]
    assert problem in messages(caplog)[0]


def test_a_read_only_file_system(small_disk, caplog):
    gradients_of_multiple(2, "traced")
    mount("-o", "remount,ro", str(small_disk))
    kept = sorted(small_disk.iterdir())
    assert_goes_on(caplog, "Read-only file system")
    assert sorted(small_disk.iterdir()) == kept


def test_a_full_disk(small_disk, caplog):
    gradients_of_multiple(2, "traced")
    kept = sorted(small_disk.iterdir())
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert_goes_on(caplog, "No space left on device")
    assert sorted(small_disk.iterdir()) == sorted([*kept, filler])


def test_off_switches(cache_directory, monkeypatch):
    def function(x):
        return torch.exp(x) * 2

    for _ in range(2):
        check(function, lambda: (normal(4),), "traced", options={"cache": False})
    with torch.compiler.config.patch(force_disable_caches=True):
        for _ in range(2):
            check(function, lambda: (normal(4),), "traced")
    monkeypatch.setenv("KERF_CACHE", "0")
    for _ in range(2):
        check(function, lambda: (normal(4),), "traced")
    assert not cache_directory.exists()


# Processes

PROGRAM = """
    import json, sys, torch, kerf
    from torch._dynamo.utils import counters
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    torch.manual_seed(0)
    for parameter in model.parameters(): torch.nn.init.normal_(parameter)
    x = torch.randn(4, 8)
    expected = torch.autograd.grad(model(x).sum(), model.parameters())
    torch.compile(model, backend="kerf")(x).sum().backward()
    torch.testing.assert_close([p.grad for p in model.parameters()], list(expected))
    hits = [c.cache_hit for c in kerf.compilations()]
    print(json.dumps([hits, counters["aot_autograd"]["autograd_cache_hit"]]))
"""


def launch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    package = str(Path(kerf.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, str(program)],
        env=os.environ | {"PYTHONPATH": package},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(output.splitlines()[-1]), errors


def test_processes_share_the_directory(tmp_path, cache_directory):
    both = [launch(tmp_path), launch(tmp_path)]
    for process in both:
        _, errors = answer(process)
        assert "cache" not in errors
    assert answer(launch(tmp_path))[0] == [[True, True], 1]
    assert not [path for path in cache_directory.iterdir() if path.suffix != ".kerf"]
