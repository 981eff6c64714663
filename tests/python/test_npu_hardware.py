"""kerf.npu and tools/npu_hardware.py against a stand-in for the card; what they say where there is none."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
import typer
from kerf import UserError, _core, compile_for, npu

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools")]

from kerf_npu_check import environment  # noqa: E402

SCRIPT = ROOT / "tools/npu_hardware.py"
STAND_IN = Path(__file__).with_name("npu_stand_in")
ABSENT = sorted(environment.missing("L2b"))
installed = pytest.mark.skipif(bool(ABSENT), reason=f"not installed ({environment.INSTALL_LINE}): {ABSENT}")


def run_with_card(folder: Path, *command: object, **extra: str) -> subprocess.CompletedProcess:
    """Runs a script in the Python of the environment, where torch_npu is the stand-in."""
    home = environment.home()
    programs = [home / environment.PROGRAMS, home / environment.COMPILERS]
    variables = {
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "PYTHONPATH": str(STAND_IN),
        "ASCEND_HOME_PATH": "/stand-in",
        "KERF_NPU_CHECK_DIR": str(home),
        "KERF_STAND_IN_WORKERS": str(environment.WORKERS),
        "KERF_STAND_IN_PACKAGES": str(Path(typer.__file__).parents[1]),
        "TRITON_CACHE_DIR": str(folder),
    }
    words = [str(word) for word in (home / environment.PYTHON, *command)]
    return subprocess.run(
        words, env=environment.clean_environment(**variables, **extra), capture_output=True, text=True
    )


def examined(tmp_path: Path, *folders: Path, **extra: str) -> tuple[int, str, dict]:
    report = tmp_path / "report.json"
    options = ("--report", report, "--rounds", 2, "--copy-bytes", 4096, "--limit", 40)
    ended = run_with_card(tmp_path, SCRIPT, *folders, *options, **extra)
    found = json.loads(report.read_text()) if report.exists() else {}
    return ended.returncode, ended.stdout + ended.stderr, found


def softmax(x, y):
    return torch.softmax(x, -1) * y


def mixed_types(x, y, i):
    return torch.where(i > 3, x.float(), y) + 1, (i * 3).int(), x + 1, (y > 0) & (i > 2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A softmax of rows that is cut for checks."""
    folder = tmp_path_factory.mktemp("saved")
    compile_for(softmax, (torch.randn(67, 40), torch.randn(67, 40)), target="npu:910B3").save(folder)
    return folder


UNSTABLE = """
_right_run, _count = run, [0]
def run(kernel, info, buffers, extents, blocks):
    _right_run(kernel, info, buffers, extents, blocks)
    if extents is info["extents"]:
        _count[0] += 1
        buffers[-1][7] += _count[0]
"""
FIRST = re.compile(r'"blocks": \[(\{[^}]*\}).*')
# What is changed in the file, the verdict that follows, words of its message.
CHANGES = {
    "plain": (lambda text: text, "right", ""),
    "wrong": (
        lambda text: text.replace("exp = tl.exp(sub)", "exp = tl.exp(sub) + 1e-3"),
        "wrong",
        "is wrong by",
    ),
    "stray": (lambda text: text, "wrong", "written to mul_9 outside its domain"),
    "unknown name": (
        lambda text: text.replace("tl.exp(sub)", "tl.exp(sbu)"),
        "does not build",
        "sbu is not defined",
    ),
    "next choice": (
        lambda text: FIRST.sub(r'"blocks": [{"BX0":4096,"BR":40},\1],', text),
        "right",
        "",
    ),
    "no choice": (
        lambda text: FIRST.sub('"blocks": [{"BX0":4096,"BR":40}],', text),
        "does not fit",
        "ub overflow",
    ),
    "far away": (
        lambda text: text.replace("tl.load(x_ptr + (", "tl.load(x_ptr + (2000000000 + "),
        "does not run",
        "aicore exception: program 0",
    ),
    "dead": (lambda text: "import os\nos._exit(5)\n" + text, "ended", "the process ended with status 5"),
    "unstable": (
        lambda text: text + UNSTABLE,
        "unstable",
        "mul_9 comes out differently when the kernel runs again",
    ),
    "hangs": (lambda text: "import time\ntime.sleep(600)\n" + text, "ended", "gave no answer within 40 s"),
    "last": (lambda text: text, "right", ""),
}


@pytest.fixture(scope="module")
def report(saved, tmp_path_factory) -> tuple[int, str, dict]:
    """Every change as a kernel of one folder."""
    folder = tmp_path_factory.mktemp("changed")
    plan = json.loads((saved / "plan.json").read_text())
    (entry,) = plan["kernels"]
    text = (saved / entry["file"]).read_text().replace("arg0_ptr", "x_ptr")
    plan["kernels"] = []
    for number, (name, (change, *_)) in enumerate(CHANGES.items()):
        file = f"{number:03d}_{name.replace(' ', '_')}.py"
        changed = change(text)
        assert (changed == text) == (name in ("plain", "stray", "last")), (
            f"{name}: nothing to change in\n{text}"
        )
        (folder / file).write_text(changed)
        values = dict(numpy.load((saved / entry["file"]).with_suffix(".npz")))
        if name == "stray":  # the kernel's last element is not its own
            values = {key: value[:-1] for key, value in values.items()}
        numpy.savez((folder / file).with_suffix(".npz"), **values)
        plan["kernels"].append(entry | {"file": file})
    (folder / "plan.json").write_text(json.dumps(plan))
    return examined(tmp_path_factory.mktemp("run"), folder)


@installed
@pytest.mark.parametrize("name", CHANGES)
def test_each_fault_is_a_row_and_the_next_kernel_runs(report, name):
    status, output, found = report
    assert status == 1, output
    row = found["kernels"][list(CHANGES).index(name)]
    _, verdict, words = CHANGES[name]
    assert row["verdict"] == verdict, row
    assert words in row["message"]
    assert (row["us"] is not None) == (verdict == "right")
    assert re.search(rf"\b{row['name']} .*\b{verdict}\b", output)
    assert f"{row['file']}: {verdict}: " in output or verdict == "right"
    if verdict == "right":
        assert 0 < row["error"] <= row["tolerance"] and row["of_copy"] > 0


@installed
def test_what_is_too_big_is_built_smaller(report):
    row = report[2]["kernels"][list(CHANGES).index("next choice")]
    assert len(row["refused"]) == 1 and "ub overflow" in row["refused"][0]
    assert row["blocks"]["BX0"] < 4096
    assert "(smaller)" in report[1]


@installed
def test_the_report(report):
    _, output, found = report
    assert not found["passed"]
    assert found["verdicts"]["right"] == 3
    assert found["machine"]["device"] == "a stand-in on the CPU"
    assert found["machine"]["packages"]["triton-ascend"] == "3.2.0"
    assert f"3 of {len(CHANGES)} kernels build, run and are right" in output


@installed
@pytest.mark.parametrize(
    ("target", "dynamic"), [("npu:910B3", False), ("npu:950", False), ("npu:910B3", True)]
)
def test_other_types_an_a5_and_sizes(tmp_path, target, dynamic):
    inputs = (
        torch.randn(33, 48).bfloat16(),
        torch.randn(33, 48),
        torch.randint(9, (33, 48), dtype=torch.int32),
    )
    plan = compile_for(mixed_types, inputs, target=target, dynamic=dynamic)
    plan.save(tmp_path / "kernels")
    status, output, found = examined(tmp_path, tmp_path / "kernels")
    assert status == 0, output
    assert found["passed"] and len(found["kernels"]) == len(plan.kernels)


@installed
def test_no_card_is_said(saved, tmp_path):
    status, output, _ = examined(tmp_path, saved, KERF_STAND_IN_NO_CARD="1")
    assert (status, "torch_npu sees no card" in output) == (2, True)


USE = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, kerf
from kerf import npu
def model(x, y):
    return torch.softmax(x, -1) * y
x, y = torch.randn(67, 40), torch.randn(67, 40)
plan = kerf.compile_for(model, (x, y), target="npu:910B3")
(kernel,) = npu.kernels(plan)
out = torch.zeros(67 * 40, device="npu")
blocks, refused = kernel.build(kernel.facts["extents"])
kernel.launch([x.flatten().to("npu"), y.flatten().to("npu"), out], kernel.facts["extents"], blocks)
torch.testing.assert_close(out.cpu().view(67, 40), model(x, y))
"""


@installed
def test_a_plan_is_launched_on_tensors(tmp_path):
    """Kerf is imported by the environment's Python, which has to be of the version that it was built for."""
    script = tmp_path / "use.py"
    script.write_text(USE)
    asked = run_with_card(tmp_path, "-c", "import sys; print(sys.version_info[:2])")
    if asked.stdout.strip() != str(sys.version_info[:2]):
        pytest.skip(f"the environment has Python {asked.stdout}")
    # An editable install keeps the core apart from the rest.
    package = tmp_path / "path" / "kerf"
    package.mkdir(parents=True)
    for file in {*Path(npu.__file__).parent.iterdir(), Path(_core.__file__)}:
        (package / file.name).symlink_to(file)
    ended = run_with_card(tmp_path, script, package.parent)
    assert ended.returncode == 0, ended.stderr


# Everywhere


def test_what_is_missing_is_named(saved, monkeypatch):
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    ended = subprocess.run([sys.executable, SCRIPT, saved], capture_output=True, text=True)
    assert ended.returncode == 2
    for words in (
        "triton is not installed: pip install triton-ascend==3.2.0",
        "ASCEND_HOME_PATH is not set: install CANN",
        f"pip install torch-npu=={torch.__version__.partition('+')[0]}",
    ):
        assert words in ended.stderr


def test_folders_without_kernels_are_refused(tmp_path):
    compile_for(softmax, (torch.randn(9, 4), torch.randn(9, 4)), target="cuda").save(tmp_path / "gpu")
    compile_for(torch.mm, (torch.randn(9, 4), torch.randn(4, 9)), target="npu:950").save(tmp_path / "mm")
    for folder, words in (("gpu", "are for cuda"), ("mm", "no kernels in"), ("none", "no plan.json")):
        ended = subprocess.run([sys.executable, SCRIPT, tmp_path / folder], capture_output=True, text=True)
        assert ended.returncode == 2
        assert words in ended.stderr


def test_a_plan_cannot_be_launched_here():
    inputs = (torch.randn(9, 4), torch.randn(9, 4))
    with pytest.raises(UserError, match=r"no Ascend card can be used: .*torch-npu.*docs/npu\.md"):
        npu.kernels(compile_for(softmax, inputs, target="npu:910B3"))
    with pytest.raises(UserError, match="for cuda"):
        npu.kernels(compile_for(softmax, inputs, target="cuda"))


COMPILE = """
import types, torch, kerf
torch.utils.rename_privateuse1_backend("npu")
torch.npu = types.SimpleNamespace(is_initialized=lambda: False, current_device=lambda: 0)
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from kerf.fx_import import import_graph
with FakeTensorMode():
    x = torch.empty(3, device="npu")
    gm = make_fx(lambda x: x + 1)(x)
import_graph(gm)
"""


def test_tensors_on_a_card_are_refused_by_torch_compile():
    ended = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True)
    assert "UserError: Kerf compiles for the CPU only; a tensor of this graph is on npu:0" in ended.stderr
    assert "docs/npu.md" in ended.stderr
