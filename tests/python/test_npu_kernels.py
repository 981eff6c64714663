"""benchmarks/npu_kernels.py: which kernels count as one, and what it says about bars."""

import sys
from pathlib import Path

import pytest
import torch
from kerf import compile_for

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools")]

import npu_kernels  # noqa: E402
from kerf_npu_check.kernel_file import read_kernel_file  # noqa: E402

SOFTMAX = ROOT / "tests/npu_kernels/softmax.py"
OK = {"verdict": "ok", "message": "", "seconds": 1.0}
SLOW = {"verdict": "slow", "message": "1 masks are lost", "seconds": 1.0}


def rows(x, y):
    return torch.softmax(x, -1) * y


def rows_of_others(image, scale):
    return torch.softmax(image @ torch.ones(33, 33), -1) * scale


def text(model, shape=(67, 33), target="npu:910B3"):
    plan = compile_for(model, (torch.randn(shape), torch.randn(shape)), target=target)
    return next(kernel.text for kernel in plan.kernels if "_exp_" in kernel.name)


def test_names_cores_and_target_make_no_difference():
    one = text(rows)
    other = text(rows_of_others)
    assert one != other
    assert npu_kernels.canonical(one) == npu_kernels.canonical(other)
    assert npu_kernels.canonical(one) == npu_kernels.canonical(text(rows, target="npu:910_9382"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tl.exp(", "tl.log("),
        ("x - peak", "peak - x"),
        ("500 * x0", "501 * x0"),
        ("axis=1", "axis=0"),
        ("-inf", "inf"),
        ('{"BX0": 8', '{"BX0": 4'),
        ('"tolerance": 2e-06', '"tolerance": 1e-06'),
        ('"elements": 2047000', '"elements": 2047001'),
    ],
)
def test_all_else_makes_a_difference(old, new):
    before = SOFTMAX.read_text()
    assert old in before
    assert npu_kernels.canonical(before) != npu_kernels.canonical(before.replace(old, new))


def test_two_names_are_not_one():
    before = SOFTMAX.read_text()
    assert "tl.store(y_ptr" in before
    swapped = before.replace("tl.store(y_ptr", "tl.store(x_ptr")
    assert npu_kernels.canonical(before) != npu_kernels.canonical(swapped)


def compiled(target="910B3", **changes):
    facts = {"model": "m", "target": target, "launches": 9, "kernels": 2, "share": 1.0, "not_affine": 0}
    facts |= {"milliseconds": 1.0, "reasons": {}, "files": {"k": str(SOFTMAX)}}
    return npu_kernels.Compiled(**facts | changes)


def found(answers, *of, minutes=1.0, levels=("L1", "L3")):
    work = npu_kernels.Work(read_kernel_file(SOFTMAX), ["910B3", "950"], answers)
    table = list(npu_kernels.rows(of, {"k": work}))
    return table, npu_kernels.bars(table, levels, minutes)


def test_a_level_counts_for_the_target_that_it_is_of(monkeypatch):
    monkeypatch.setattr(npu_kernels, "not_installed", lambda level: None)
    answers = {
        "L1": {"A2/A3": OK, "A5": SLOW},
        "L3": {"910B3": OK, "950": OK},
        "L2": {"": {"verdict": "not run"}},
    }
    table, verdicts = found(answers, compiled(), compiled("950"))
    assert [row["L1"] for row in table] == [[1, 1], [0, 1]]
    assert [row["L3"] for row in table] == [[1, 1], [1, 1]]
    assert table[0]["L2"] == [0, 0]
    assert verdicts["L1: every kernel"] == "m on 950 0/1"
    assert verdicts["L3: every kernel"] == "met"


def test_what_could_not_come_to_a_level_has_not_passed_it():
    unrun = {"verdict": "not run", "message": "level 1 came to no linalg"}
    table, _ = found({"L1": {"A2/A3": SLOW}, "L3": {"910B3": unrun}}, compiled())
    assert table[0]["L3"] == [0, 1]


def test_bars(monkeypatch):
    monkeypatch.setattr(npu_kernels, "not_installed", lambda level: None)
    answers = {"L1": {"A2/A3": OK}, "L3": {"910B3": OK}}
    _, verdicts = found(answers, compiled())
    assert set(verdicts.values()) == {"met"}
    bad = compiled(share=0.9, not_affine=1, milliseconds=2.5)
    _, verdicts = found(answers, bad, minutes=21)
    assert sum(verdict != "met" for verdict in verdicts.values()) == 4
    assert verdicts["share of bytes at least 95%"] == "m on 910B3 90.0%"
    monkeypatch.setattr(npu_kernels, "not_installed", lambda level: "bishengir not installed")
    assert found(answers, compiled())[1]["L3: every kernel"] == "bishengir not installed"
