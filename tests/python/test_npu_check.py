"""kerf npu-check: what it reads, judges and prints; where the environments are installed, the levels too."""

import json
import math
import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/kerf_npu_check/workers")]

import buffers  # noqa: E402
import cut_run  # noqa: E402
import level3  # noqa: E402
from kerf import _core  # noqa: E402
from kerf.cli import app  # noqa: E402
from kerf_npu_check import environment, table  # noqa: E402
from kerf_npu_check.check import Checker, Report, Workers, check_all  # noqa: E402
from kerf_npu_check.kernel_file import InputError, find_kernel_files, read_kernel_file  # noqa: E402
from kerf_npu_check.process import Worker  # noqa: E402

KERNELS = ROOT / "tests/npu_kernels"
GOOD = ("column_sum", "flux", "pointwise", "softmax")
BAD = ("divided_pointer", "mask_or", "too_big")


def npu_check(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["npu-check", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


# Reading


def test_every_kernel_of_the_folder_is_read():
    kernels = find_kernel_files([KERNELS])
    assert sorted(kernel.name for kernel in kernels) == sorted(GOOD + BAD)
    flux = next(kernel for kernel in kernels if kernel.name == "flux")
    assert flux.axes() == "q < 3, h < 24, t < 512, d < 128 kept"
    assert next(kernel for kernel in kernels if kernel.name == "mask_or").axes() == "X0 < 2000"
    assert flux.fitting_targets() == ["910B3", "910_9382", "950"]


def test_a_kernel_for_more_memory_is_not_for_targets_with_less(tmp_path):
    text = (KERNELS / "softmax.py").read_text().replace("npu:910B3", "npu:950")
    (tmp_path / "softmax.py").write_text(text)
    assert read_kernel_file(tmp_path / "softmax.py").fitting_targets() == ["950"]


def test_the_grid_of_a_dynamic_kernel_is_over_its_sizes(tmp_path):
    text = (KERNELS / "softmax.py").read_text().replace('"sizes": {}', '"sizes": {"s0": 5, "s1": 9}')
    (tmp_path / "softmax.py").write_text(text.replace('[["X0", "BX0"]]', '[["(s0*s1)", "BX0"]]'))
    facts = read_kernel_file(tmp_path / "softmax.py").facts
    assert cut_run._programs(facts, facts["cut"] | facts["blocks"][0]) == 3  # half of 45 / 8


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("KERNEL = {", "FACTS = {", "no line that begins with `KERNEL = {`"),
        ('"sizes": {},', '"sizes": {}', ":39: KERNEL is no JSON: "),
        ('"npu:910B3"', '"cuda"', 'is for "cuda"; npu-check is about npu:910B3, '),
        ('"npu:910B3"', '"npu:910X"', 'is for "npu:910X"'),
        ('"cores": 40,\n    "tolerance": 2e-06', '"cores": 40', 'has no "tolerance"'),
        ('"sizes": {}', '"sizes": []', 'has a "sizes" of the wrong type'),
        ('"dtype": "f32"', '"dtype": "f64"', "unknown dtype or mode"),
        ('"elements": 2047000, ', "", "a buffer without name, elements"),
        ('"cut": {"X0": 19, ', '"cut": {"X1": 19, ', 'the same axes in "extents" and "cut"'),
        ('[["X0", "BX0"]]', '[["X0", "BX1"]]', "no pair of known extent and block: ['X0', 'BX1']"),
        ('{"BX0": 4, "BR0": 512}', '{"BX0": 4}', "all of the same names"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, old, new, words):
    text = (KERNELS / "softmax.py").read_text()
    assert old in text
    file = tmp_path / "broken.py"
    file.write_text(text.replace(old, new))
    status, output = npu_check(file)
    assert status == 2
    assert str(file) in output
    assert words in output


def test_paths_that_hold_nothing_are_refused(tmp_path):
    for path, words in ((tmp_path / "none.py", "does not exist"), (tmp_path, "no kernel file")):
        with pytest.raises(InputError, match=f"{re.escape(str(path))}: .*{words}"):
            find_kernel_files([path])
    assert npu_check() == (
        2,
        "kerf npu-check: nothing to check: give kernel files or folders of them, or --install\n",
    )
    status, output = npu_check(KERNELS / "softmax.py", "--levels", "L1,L4")
    assert (status, output) == (2, "kerf npu-check: there is no level L4; known are L0, L1, L2, L2b, L3\n")
    status, output = npu_check(KERNELS / "softmax.py", "--target", "310")
    assert (status, output) == (2, "kerf npu-check: there is no target 310; known are 910B3, 910_9382, 950\n")


# Models

MODEL = """
import torch
def model(x, w): return torch.softmax(x @ w, -1) * 2
inputs = (torch.randn(40, 8, requires_grad=True), torch.randn(8, 33))
"""


class Scaled(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2


@pytest.mark.parametrize(("training", "kernels"), [((), 1), (("--training",), 2)])
def test_a_model_is_compiled_first(tmp_path, training, kernels):
    (tmp_path / "model.py").write_text(MODEL)
    out = tmp_path / "out.json"
    npu_check(tmp_path / "model.py", "--levels", "L0", "--json", out, "--target", "950,910_9382", *training)
    found = json.loads(out.read_text())["kernels"]
    assert len(found) == kernels
    for kernel in found:
        assert kernel["target"] == "npu:910_9382"
        assert kernel["levels"]["L0"][""] == {"verdict": "ok", "message": ""}


def test_a_saved_graph_is_compiled_first(tmp_path):
    torch.export.save(torch.export.export(Scaled(), (torch.randn(9, 7),)), tmp_path / "graph.pt2")
    out = tmp_path / "out.json"
    npu_check(tmp_path / "graph.pt2", "--levels", "L0", "--json", out)
    (kernel,) = json.loads(out.read_text())["kernels"]
    assert (kernel["target"], kernel["levels"]["L0"][""]["verdict"]) == ("npu:910B3", "ok")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = abs", "defines no inputs"),
        ("import torch; model, inputs = torch.mm, [torch.ones(3, 3)] * 2", "has no kernels for npu:910B3"),
    ],
)
def test_models_that_cannot_be_checked_are_refused(tmp_path, text, words):
    (tmp_path / "model.py").write_text(text)
    status, output = npu_check(tmp_path / "model.py")
    assert (status, words in output) == (2, True), output


# Nothing installed


@pytest.fixture
def nothing_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("KERF_NPU_CHECK_DIR", str(tmp_path / "empty"))


def test_what_is_not_installed_is_not_run_and_never_ok(nothing_installed, tmp_path):
    out = tmp_path / "out.json"
    status, output = npu_check(KERNELS / "softmax.py", "--json", out, "--levels", "L1,L2,L2b,L3")
    assert status == 1
    for level in ("L1", "L2", "L2b", "L3"):
        assert re.search(rf"^{level}: not run: .*not installed: kerf npu-check --install$", output, re.M)
    assert "ok" not in output
    found = json.loads(out.read_text())
    assert not found["passed"]
    assert set(found["not_installed"]) == {"L1", "L2", "L2b", "L3"}
    assert found["kernels"][0]["levels"]["L3"][""]["verdict"] == "not run"
    assert not (tmp_path / "empty").exists()


def test_a_part_counts_only_with_its_pins_and_its_files(nothing_installed):
    own = next(part for part in environment.PARTS if part.name == "own")
    environment.home().mkdir(parents=True)
    assert not own.installed()
    own.stamp().write_text(own.pins)
    assert not own.installed()
    (environment.home() / environment.SHIM).touch()
    assert own.installed()
    own.stamp().write_text("an older one")
    assert not own.installed()


def test_an_installation_does_what_is_not_done_and_says_what_failed(nothing_installed, monkeypatch):
    done = []

    def fail(root: Path) -> None:
        environment._run([sys.executable, "-c", "print('no such package'); raise SystemExit(3)"])

    first = environment.Part("first", "easy", "1", 2, 3, "bin", done.append)
    monkeypatch.setattr(environment, "PARTS", (first, first._replace(name="second", install=fail)))
    for _ in range(2):
        status, output = npu_check("--install")
        assert status == 1
        assert "second: easy; 2 MB to load, 3 MB on disk" in output
        assert f"{sys.executable} -c" in output
        assert "failed with status 3:\nno such package" in output
    assert len(done) == 1
    assert "first: there (easy)" in output


# Verdicts and what is printed


def report(**answers: dict[str, dict]) -> Report:
    unasked = {
        level: {"": {"verdict": "not run", "message": "not asked for"}} for level in ("L0", "L2", "L2b")
    }
    answers = unasked | answers
    return Report(read_kernel_file(KERNELS / "softmax.py"), {k: answers[k] for k in sorted(answers)})


def planned(verdict: str, ub_bytes: int, message: str = "") -> dict:
    facts = {"ub_bytes": ub_bytes, "calls": 8, "scalars": 1, "flags": 9, "barriers": 3}
    return {"verdict": verdict, "message": message, "seconds": 0.25, **facts}


OK = {"verdict": "ok", "message": "", "seconds": 0.1}


@pytest.mark.parametrize("verdict", ["slow", "reject", "fail", "retry"])
@pytest.mark.parametrize("level", ["L1", "L2b", "L3"])
def test_one_bad_answer_fails_a_kernel(monkeypatch, level, verdict):
    monkeypatch.setattr(table, "not_installed", lambda level: None)
    answers = {"L1": {"A5": OK}, "L2b": {"plain": OK}, "L3": {"910B3": OK}}
    assert table.all_passed([report(**answers)])
    answers[level] = answers[level] | {"another": OK | {"verdict": verdict}}
    assert not table.all_passed([report(**answers)])


def test_nothing_run_is_nothing_passed():
    unasked = {"": {"verdict": "not run", "message": "not asked for"}}
    assert not report(L1=unasked, L3=unasked).passed()
    assert report(L1={"A5": OK}, L3=unasked).passed()


def test_all_is_not_well_without_the_levels_that_a_claim_rests_on(monkeypatch):
    fine = report(L1={"A5": OK}, L3={"910B3": OK})
    for absent, passed in (("L2", True), ("L2b", True), ("L1", False), ("L3", False)):
        monkeypatch.setattr(table, "not_installed", lambda level, absent=absent: level == absent)
        assert table.all_passed([fine]) == passed


def test_the_table(monkeypatch):
    monkeypatch.setattr(table, "not_installed", lambda level: None)
    one = report(
        L1={"A2/A3": OK, "A5": OK | {"verdict": "slow", "message": "1 masks are lost"}},
        L2={"": OK | {"error": 1.5e-7}},
        L2b={"plain": OK | {"error": 3e-7}, "vendor": OK | {"error": 2e-7}},
        L3={"910B3": planned("ok", 98304), "950": planned("retry", 99000, "too big; 4 x 512 fits")},
    )
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    table.print_reports([one], console)
    text = console.export_text()
    row = next(line for line in text.splitlines() if "softmax" in line)
    for cell in (
        "x0 < 4094 kept, r0 < 500 folded",
        "8 x 512",
        "98,304 (50%)",
        "not run",
        "3.0e-07 of 2.0e-06",
        "8/1/12",
    ):
        assert cell in row
    assert "A5 slow" in text
    assert "950 retry" in text
    lines = text.splitlines()
    assert f"{KERNELS}/softmax.py: L1 A5: slow: 1 masks are lost" in lines
    assert f"{KERNELS}/softmax.py: L3 950: retry: too big; 4 x 512 fits" in lines
    assert "time a kernel: L1 0.20 s, L2 0.10 s, L2b 0.20 s, L3 0.50 s" in lines
    assert lines[-1] == "0 of 1 kernels pass what was run"


class Scripted:
    """Stands for a worker: answers by level and block."""

    def __init__(self, plans: dict[int, dict]) -> None:
        self.plans = plans

    def ask(self, request: dict, limit: float) -> dict:
        if request["level"] == "level1":
            Path(request["output"]).write_text(str(request["blocks"]["BX0"]))
            return dict(OK)
        return dict(self.plans[int(Path(request["linalg"]).read_text())])


@pytest.mark.parametrize(
    ("plans", "words"),
    [
        ({8: planned("retry", 1, "big"), 4: planned("ok", 1)}, "big; 4 x 512 fits"),
        ({8: planned("retry", 1, "big"), 4: planned("retry", 1)}, "big; no other choice of blocks fits"),
        ({8: {"verdict": "fail", "message": "x", "too_big": True}, 4: planned("ok", 1)}, "x; 4 x 512 fits"),
        ({8: {"verdict": "fail", "message": "a crash"}}, "a crash"),
        ({8: planned("ok", 1)}, ""),
    ],
)
def test_what_is_too_big_names_the_choice_that_fits(tmp_path, monkeypatch, plans, words):
    monkeypatch.setattr("kerf_npu_check.check.not_installed", lambda level: None)
    worker = Scripted(plans)
    found = Checker(["L3"], ["910B3"], tmp_path).check(
        read_kernel_file(KERNELS / "softmax.py"), Workers(worker, worker)
    )
    assert found.answers["L3"]["910B3"]["message"] == words
    assert found.answers["L1"][""]["verdict"] == "not run"


@pytest.mark.parametrize(("found", "verdict"), [([], "ok"), ([(12, "mask", "no `|`")], "reject")])
def test_rules_of_the_core(tmp_path, monkeypatch, found, verdict):
    kernel = read_kernel_file(KERNELS / "softmax.py")
    asked = []
    monkeypatch.setattr(_core, "check_kernel_text", lambda *a: asked.append(a) or found)
    answer = Checker(["L0"], [], tmp_path).check(kernel, Workers(None, None)).answers["L0"][""]
    assert asked == [(kernel.text, "npu:910B3")]
    assert answer == {"verdict": verdict, "message": "line 12: mask: no `|`" if found else ""}


@pytest.mark.parametrize("name", GOOD + BAD)
def test_kernels_of_the_folder_by_the_rules_of_the_core(tmp_path, name):
    kernel = read_kernel_file(KERNELS / f"{name}.py")
    answer = Checker(["L0"], [], tmp_path).check(kernel, Workers(None, None)).answers["L0"][""]
    assert answer["verdict"] == ("ok" if name in GOOD else "reject"), answer["message"]


# Inputs and judgement


@pytest.mark.parametrize("first", [0, 65535, 3_000_000_000])
@pytest.mark.parametrize("number", [0, 3])
def test_the_formula(first, number):
    def h(i: int) -> int:
        value = ((i + 1) * 2654435761 + number * 40503) % 2**32
        value = ((value >> 15) ^ value) * 2246822519 % 2**32
        return (value >> 13) ^ value

    hashes = [h(first + i) for i in range(50)]
    expected = {
        "f32": np.array([v / 2**32 * 4 - 2 for v in hashes]).astype(np.float32),
        "f16": np.array([v / 2**32 * 4 - 2 for v in hashes]).astype(np.float16),
        "bool": [v >> 5 & 1 for v in hashes],
        "i64": [v % 1000 for v in hashes],
        "u8": [v % 100 for v in hashes],
    }
    for dtype, below in (("f32", None), ("f16", None), ("bool", None), ("i64", 1000), ("u8", 100)):
        got = buffers.formula(first, 50, number, dtype, below)
        assert np.array_equal(got, expected[dtype])
    assert buffers.formula(first, 50, number, "i8", None).tolist() == [v % 7 for v in hashes]


@pytest.mark.parametrize(("dtype", "step"), [("bf16", 2.0**-7), ("f16", 2.0**-10)])
def test_short_floats_are_rounded_as_torch_rounds(dtype, step):
    """By way of f32: what is beyond its precision does not break a tie."""
    tie = 1 + step / 2
    values = np.array(
        [tie, tie + 2.0**-40, tie + 2.0**-20, -tie - 2.0**-20, 1 + 3 * step / 2, -0.0, math.inf]
    )
    expected = [1, 1, 1 + step, -1 - step, 1 + 2 * step, -0.0, math.inf]
    got = buffers.numbers(buffers.rounded(values, dtype), dtype)
    assert got.tolist() == expected
    assert np.signbit(got).tolist() == np.signbit(expected).tolist()
    torch_dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    assert got.tolist() == torch.from_numpy(values).to(torch_dtype).double().tolist()
    assert np.isnan(buffers.numbers(buffers.rounded(np.array([math.nan]), dtype), dtype)).all()


@pytest.mark.parametrize(
    ("got", "want", "tolerance", "error", "bad"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0, 0, []),
        ([1.0, 2.002], [1.0, 2.0], 1e-3 * 1.001, 1e-3, []),
        ([1.002, 2.0], [1.0, 2.0], 0.9e-3, 1e-3, [0]),
        ([math.nan, math.inf, -math.inf, 1.0], [math.nan, math.inf, -math.inf, 1.0], 0, 0, []),
        ([math.nan, 1.0], [1.0, 1.0], 1e9, math.inf, [0]),
        ([1.0, 1.0], [math.nan, 1.0], 1e9, math.inf, [0]),
        ([math.inf, 1.0], [-math.inf, 1.0], 1e9, math.inf, [0]),
        ([math.inf, 1.0], [3.0, 1.0], 1e9, math.inf, [0]),
        ([3.0, 1.0], [math.inf, 1.0], 1e9, math.inf, [0]),
        ([0.0, -0.0], [-0.0, 0.0], 0, 0, []),
        ([1e-9], [0.0], 1e-6, 1e-9, [0]),
        ([], [], 0, 0, []),
    ],
)
def test_comparison(got, want, tolerance, error, bad):
    found, off = cut_run.compare(np.array(got), np.array(want), tolerance)
    assert found == pytest.approx(error)
    assert np.flatnonzero(off).tolist() == bad


def test_each_element_has_its_own_bound():
    """Besides the tolerance: of a kernel that rounds much, and no other's."""
    got, want, bound = np.array([1.0, 3e-7, 3e-7]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1e-6, 1e-7])
    assert np.flatnonzero(cut_run.compare(got, want, 1e-8, bound)[1]).tolist() == [2]


def test_integers_and_bools_are_equal_or_not():
    assert cut_run.compare(np.array([10**9, 2]), np.array([10**9 + 1, 2]), 1e-3)[1].tolist() == [True, False]
    assert cut_run.compare(np.array([True, False]), np.array([True, True]), 1e-3)[1].tolist() == [False, True]


def cut(tmp_path: Path, **expected: np.ndarray) -> cut_run.CutRun:
    facts = [
        {"name": "x", "dtype": "f32", "elements": 70000, "mode": "in"},
        {"name": "y", "dtype": "f32", "elements": 70000, "mode": "out"},
        {"name": "z", "dtype": "i32", "elements": 5, "mode": "inout", "below": 9},
    ]
    kernel = {"buffers": facts, "sizes": {}, "cut": {"X": 70000, "Y": 3}, "blocks": [{"B": 4096}]}
    np.savez(tmp_path / "k.npz", **{"z_at": np.arange(1), "z": np.array([5])} | expected)
    kernel |= {"grid": [["X", "B"], ["Y", 1]], "cores": 40, "tolerance": 1e-6}
    return cut_run.CutRun(kernel, str(tmp_path / "k.npz"))


def test_a_run_is_judged_by_all_that_was_written(tmp_path):
    expected = {"y_at": np.array([3, 69999]), "y": np.array([1.0, -4.0])}
    run = cut(tmp_path, **expected)
    assert run.programs == 27  # of 54 tiles
    x, y, z = run.buffers
    assert not x.written(np.empty(0, np.int64)).size
    y.data[[3, 69999]] = 1.0, np.float32(-4.0) * np.float32(1 + 2e-7)
    z.data[0] = 5
    assert run.judge()["verdict"] == "ok"
    assert 0 < run.judge()["error"] < 1e-6
    y.data[3] = 1.00001
    assert "y: 1 of 2 elements are off, the first at 3: 1.0000" in run.judge()["message"]
    y.data[3] = 1.0
    y.data[66000] = 0.0
    assert run.judge()["message"] == (
        "y: 1 elements were written that are not the kernel's, the first at 66000"
    )
    y.data.view(np.uint8)[4 * 66000 : 4 * 66001] = buffers.UNTOUCHED
    z.data[4] += 1
    assert "z: 1 elements were written" in run.judge()["message"]
    assert "no values are expected of y" in cut(tmp_path).judge()["message"]


@pytest.mark.parametrize(
    ("elements", "reached", "size"), [(100, 17, 24), (100, 24, 24), (21, 17, 21), (9, 9, 9)]
)
def test_a_buffer_of_a_cut_run_ends_with_a_burst_or_as_it_really_does(elements, reached, size):
    facts = {"name": "x", "dtype": "f32", "elements": elements, "cut_elements": reached, "mode": "in"}
    assert buffers.Buffer(facts, 0).data.size == size


def test_memory_before_an_output_counts(tmp_path):
    run = cut(tmp_path, y_at=np.empty(0, np.int64), y=np.empty(0))
    run.buffers[2].data[0] = 5
    assert run.judge()["verdict"] == "ok"
    run.buffers[1]._before[-1] = 0
    assert "y: 1 elements were written that are not the kernel's, the first at -1" in run.judge()["message"]


def test_expected_values_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"k\.npz, the expected values"):
        cut_run.CutRun(
            {"cut": {}, "blocks": [{}], "sizes": {}, "grid": [], "tolerance": 0}, str(tmp_path / "k.npz")
        )


MODULE = """
func.func @k() {
  %c0_i64 = arith.constant 0 : i64
  %c16384_i64 = arith.constant 16384 : i64
  %0 = hivm.hir.pointer_cast(%c0_i64, %c16384_i64) : memref<4x1000xf32, #hivm.address_space<ub>>
  %1 = hivm.hir.pointer_cast(%c0_i64) : memref<100xi1, #hivm.address_space<ub>>
  scf.for %i = %a to %b step %c {
    func.call @load(%0) : (memref<4x1000xf32>) -> ()
    scf.for %j = %a to %b step %c {
      %2 = memref.load %0[%j] : memref<2048xi64, #hivm.address_space<ub>>
      memref.store %2, %0[%j] : memref<2048xi64, #hivm.address_space<ub>>
    }
    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
    scf.for %j = %a to %b step %c {
      %3 = memref.load %0[%j] : memref<1xf32, #hivm.address_space<gm>>
      func.call @scale(%0, %3) : (memref<4x1000xf32>, f32) -> ()
    }
  }
  hivm.hir.pipe_barrier[<PIPE_ALL>]
}
"""


def test_facts_of_a_planned_module():
    facts = level3.module_facts(MODULE, a5=False)
    assert facts == {
        "ub_bytes": 16384 + 16000,
        "calls": 2,
        "loops": 3,
        "scalars": 3,
        "scalar_loops": 1,
        "flags": 1,
        "barriers": 1,
    }


# With the environments


def expected_values(name: str) -> dict[str, np.ndarray]:
    def x(count: int, number: int = 0) -> np.ndarray:
        return buffers.formula(0, count, number, "f32", None).astype(np.float64)

    def whole(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
        return {f"{name}_at": np.arange(values.size), name: values.ravel()}

    if name == "pointwise":
        return whole("out", np.exp(x(12301, 0) + x(12301, 1)))
    if name == "softmax":
        e = np.exp(x(9500).reshape(19, 500))
        return whole("y", e / e.sum(1, keepdims=True))
    if name == "column_sum":
        return whole("out", x(45 * 1030).reshape(45, 1030)[:, :530].sum(0))
    if name == "flux":
        cut = np.s_[:, :12, :48]
        qkv, bias = x(4718592).reshape(512, 3, 24, 128), x(9216, 1).reshape(3, 24, 128)
        values = ((qkv + bias).transpose(1, 2, 0, 3) * x(65536, 2).reshape(512, 128))[cut]
        return {"out_at": np.arange(4718592).reshape(3, 24, 512, 128)[cut].ravel(), "out": values.ravel()}
    if name == "mask_or":
        return whole("out", x(2000) + 1)
    if name == "divided_pointer":
        return whole("out", x(1000).repeat(3))
    return whole("out", np.exp(x(140000)) * x(140000))


ABSENT = sorted({part for level in environment.NEEDS for part in environment.missing(level)})
installed = pytest.mark.skipif(bool(ABSENT), reason=f"not installed ({environment.INSTALL_LINE}): {ABSENT}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    for name in GOOD + BAD:
        shutil.copy(KERNELS / f"{name}.py", folder)
        np.savez(folder / f"{name}.npz", **expected_values(name))
    return folder


@pytest.fixture(scope="module")
def reports(folder) -> dict[str, Report]:
    found = check_all(find_kernel_files([folder]), ["L1", "L2", "L2b", "L3"], [], 2, lambda report: None)
    return {report.kernel.name: report for report in found}


def verdicts(report: Report) -> dict[str, str]:
    """Of each level, where all its runs agree."""
    found = {}
    for level, answers in report.answers.items():
        words = {answer["verdict"] for answer in answers.values()}
        found[level] = words.pop() if len(words) == 1 else "mixed"
    return found


@installed
@pytest.mark.parametrize("name", GOOD)
def test_kernels_that_keep_the_rules_pass_all_levels(reports, name):
    messages = [answer["message"] for _, _, answer in reports[name].flat()]
    assert verdicts(reports[name]) == {"L0": "not run"} | dict.fromkeys(("L1", "L2", "L2b", "L3"), "ok"), (
        messages
    )
    assert set(reports[name].answers["L3"]) == {"910B3", "910_9382", "950"}
    for level, _, answer in reports[name].flat():
        if level == "L3":
            assert 0 < answer["ub_bytes"] < 0.9 * (192 << 10)
            assert answer["calls"] > 0
        if level in ("L2", "L2b"):
            assert 0 < answer["error"] <= reports[name].kernel.facts["tolerance"]


@installed
def test_the_buffer_of_a_known_kernel(reports):
    """Two inputs and an output, each twice."""
    assert reports["pointwise"].answers["L3"]["910B3"]["ub_bytes"] == 6 * 6144 * 4


@installed
def test_a_mask_with_or_is_slow_and_touches_memory_past_the_end(reports):
    found = reports["mask_or"]
    assert verdicts(found)["L1"] == "slow"
    assert "2 masks are lost" in found.answers["L1"]["A2/A3"]["message"]
    assert verdicts(found)["L2"] == "ok"  # the interpreter cannot see it
    assert found.answers["L2b"]["plain"]["message"] == "program 0 reads or writes past the end of x"
    assert not found.passed()


@installed
def test_a_divided_pointer_is_slow(reports):
    found = reports["divided_pointer"]
    assert verdicts(found)["L1"] == "slow"
    assert "loops over single elements" in found.answers["L1"]["A5"]["message"]
    assert found.answers["L3"]["910B3"]["verdict"] == "slow"


@installed
def test_a_tile_that_is_too_big(reports):
    answers = reports["too_big"].answers
    assert verdicts(reports["too_big"])["L1"] == "ok"
    assert answers["L3"]["910B3"]["verdict"] == "fail"
    assert answers["L3"]["910B3"]["message"] == "ub overflow: 524288 bytes, 196608 available; 4096 fits"
    assert answers["L3"]["950"]["message"].endswith("253952 available; 32768 fits")


@installed
def test_the_command_on_a_folder(folder, tmp_path):
    out = tmp_path / "out.json"
    status, output = npu_check(
        folder / "pointwise.py", "--levels", "L1,L3", "--target", "910B3", "--json", out
    )
    assert status == 0
    assert "1 of 1 kernels pass what was run" in output
    found = json.loads(out.read_text())
    assert found["passed"]
    assert set(found["kernels"][0]["levels"]["L3"]) == {"910B3"}
    assert found["kernels"][0]["levels"]["L2"][""]["message"] == "not asked for"
    assert npu_check(folder / "mask_or.py", "--levels", "L1")[0] == 1


# Each is softmax, or pointwise, with one thing changed.
CHANGES = [
    (
        "pointwise",
        "tl.exp(x + y), mask=m)",
        "tl.exp(x + y) + 1e-4, mask=m)",
        "elements are off, the first at 0",
    ),
    ("pointwise", "m = x0 < X0", "m = x0 < X0 + 1", "1 elements were written that are not the kernel's"),
    ("pointwise", "m = x0 < X0", "m = x0 < X0 - 1", "1 of 12301 elements are off, the first at 12300"),
    ("pointwise", "x = tl.load(x_ptr + x0", "x = tl.load(x_ptr + x0 + 990000", "past the end of x|SIGSEGV"),
    ("pointwise", "tl.store(out_ptr + x0", "tl.store(y_ptr + x0", "may only read|SIGSEGV"),
    ("pointwise", "tl.store(out_ptr + x0", "tl.store(z_ptr + x0", "z_ptr.* is not defined"),
    ("softmax", "tl.num_programs(0)):", "2 * tl.num_programs(0)):", "elements are off, the first at"),
]


@installed
@pytest.mark.parametrize(("name", "old", "new", "words"), CHANGES)
def test_wrong_kernels_fail_where_they_are_run(folder, tmp_path, name, old, new, words):
    text = (folder / f"{name}.py").read_text()
    assert old in text
    (tmp_path / f"{name}.py").write_text(text.replace(old, new))
    shutil.copy(folder / f"{name}.npz", tmp_path)
    found = check_all(find_kernel_files([tmp_path]), ["L2", "L2b"], [], 1, lambda report: None)[0]
    answers = [answer for level, _, answer in found.flat() if level in ("L2", "L2b")]
    assert len(answers) == 3
    for answer in answers:
        assert answer["verdict"] in ("fail", "reject")
        assert re.search(words, answer["message"]), answer["message"]


FUNCTIONS = """
        v = tl.where(x > 1.0, libdevice.tanh(x), tl.math.erf(y))
        v = tl.where(libdevice.isnan(x) | (tl.floor(y) == -2.0), tl.sin(x), v)
        tl.store(out_ptr + x0, v, mask=m)
"""


@installed
def test_functions_of_the_device_have_forms_on_the_host(folder, tmp_path):
    text = (folder / "pointwise.py").read_text()
    text = re.sub(r"\n *tl\.store\(.*\n", FUNCTIONS, text, count=1)
    text = text.replace(
        "import triton\n", "import triton\nfrom triton.language.extra.ascend import libdevice\n", 1
    )
    (tmp_path / "pointwise.py").write_text(text.replace('{"BX0": 6144}, ', "").replace("6144", "3072"))
    x, y = (buffers.formula(0, 12301, number, "f32", None).astype(np.float64) for number in (0, 1))
    values = np.where(x > 1, np.tanh(x), np.vectorize(math.erf)(y))
    values = np.where(np.floor(y) == -2, np.sin(x), values)
    np.savez(tmp_path / "pointwise.npz", out_at=np.arange(12301), out=values)
    found = check_all(find_kernel_files([tmp_path]), ["L1", "L2", "L2b", "L3"], [], 1, lambda report: None)[0]
    assert found.passed(), [answer["message"] for _, _, answer in found.flat()]


PAIRS = """
        even, odd = tl.split(tl.reshape(x + y, [BX0 // 2, 2]))
        tl.store(out_ptr + x0, tl.reshape(tl.join(tl.exp(even), odd), [BX0]), mask=m)
"""


@installed
def test_pairs_are_split_and_joined(folder, tmp_path):
    text = re.sub(r"\n *tl\.store\(.*\n", PAIRS, (folder / "pointwise.py").read_text(), count=1)
    (tmp_path / "pointwise.py").write_text(text.replace('{"BX0": 6144}, ', "").replace("6144", "3072"))
    x, y = (buffers.formula(0, 12301, number, "f32", None).astype(np.float64) for number in (0, 1))
    values = np.where(np.arange(12301) % 2 == 0, np.exp(x + y), x + y)
    np.savez(tmp_path / "pointwise.npz", out_at=np.arange(12301), out=values)
    found = check_all(find_kernel_files([tmp_path]), ["L1", "L2", "L2b", "L3"], [], 1, lambda report: None)[0]
    assert found.passed(), [answer["message"] for _, _, answer in found.flat()]


# With NaN in one row. As codegen/triton/fold.cpp has it (with_nan), and without.
MAXIMUM = """
        x = tl.where((x0.to(tl.float32) == 3.0) & (r0.to(tl.float32) == 5.0), float("nan"), x)
        any_nan = tl.max(tl.where(x != x, 1.0, 0.0), axis=1)[:, None]
        peak = tl.where(any_nan > 0.0, float("nan"), tl.max(x, axis=1)[:, None])
        tl.store(y_ptr + (500 * x0 + r0), tl.broadcast_to(peak, [BX0, BR0]), mask=m)
"""


@installed
@pytest.mark.parametrize("verdict", ["ok", "fail"])
def test_a_maximum_keeps_nan_only_with_a_fold_beside_it(folder, tmp_path, verdict):
    text = (folder / "softmax.py").read_text().replace('{"BX0": 8, "BR0": 512}, ', "").replace("= 8,", "= 4,")
    text = re.sub(r"\n *peak = .*\n(.*\n)* *tl\.store\(.*\n", lambda _: MAXIMUM, text, count=1)
    if verdict == "fail":
        text = text.replace("any_nan > 0.0", "any_nan > 1.0")
    (tmp_path / "softmax.py").write_text(text)
    values = buffers.formula(0, 9500, 0, "f32", None).astype(np.float64).reshape(19, 500)
    values[3, 5] = np.nan
    np.savez(tmp_path / "softmax.npz", y_at=np.arange(9500), y=values.max(1).repeat(500))
    levels = ["L1", "L2b", "L3"]
    found = check_all(find_kernel_files([tmp_path]), levels, [], 1, lambda report: None)[0]
    messages = [answer["message"] for _, _, answer in found.flat()]
    assert verdicts(found) == {"L0": "not run", "L2": "not run", "L1": "ok", "L2b": verdict, "L3": "ok"}, (
        messages
    )


@installed
def test_device_formulas_are_seen(folder, tmp_path):
    """log1p of small numbers: exact where the kernel is run as it is, far off as the device rewrites it."""
    text = (folder / "pointwise.py").read_text().replace("tl.exp(x + y)", "libdevice.log1p(x * 1e-5)")
    text = text.replace(
        "import triton\n", "import triton\nfrom triton.language.extra.ascend import libdevice\n", 1
    )
    (tmp_path / "pointwise.py").write_text(text)
    values = np.log1p(buffers.formula(0, 12301, 0, "f32", None) * 1e-5)
    np.savez(tmp_path / "pointwise.npz", out_at=np.arange(12301), out=values)
    found = check_all(find_kernel_files([tmp_path]), ["L2b"], [], 1, lambda report: None)[0].answers["L2b"]
    assert found["plain"]["verdict"] == "ok", found["plain"]["message"]
    assert found["vendor"]["verdict"] == "fail"
    assert found["vendor"]["error"] > 1e-4


@installed
def test_a_worker_that_dies_or_hangs_costs_one_answer(folder, tmp_path):
    kernel = read_kernel_file(folder / "pointwise.py")
    stuck = tmp_path / "stuck.py"
    stuck.write_text("import time\ntime.sleep(60)\n")
    gone = tmp_path / "gone.py"
    gone.write_text("import os, sys\nprint('last words', file=sys.stderr, flush=True)\nos._exit(3)\n")
    request = {"level": "level2", "kernel": kernel.facts, "values": str(folder / "pointwise.npz")}
    worker = Worker(interpreter=True)
    begin = time.monotonic()
    assert (
        worker.ask(request | {"path": str(stuck)}, 0.5)["message"] == "the process gave no answer within 0 s"
    )
    assert time.monotonic() - begin < 30
    assert worker.ask(request | {"path": str(gone)}, 60)["message"] == (
        "the process ended with status 3: last words"
    )
    assert worker.ask(request | {"path": str(kernel.path)}, 60)["verdict"] == "ok"
    worker.close()
