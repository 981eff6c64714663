"""The verifier of kernel text as Python calls it; the rules have golden files of their own (golden/npu)."""

import kerf
import pytest
from kerf import _core

TEXT = """import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, BX0: tl.constexpr = 1024):
    for tile in range(tl.program_id(0), 4, tl.num_programs(0)):
        x0 = tile * BX0 + tl.arange(0, BX0)
        tl.store(y_ptr + x0, tl.load(x_ptr + x0) + 1.0)


KERNEL = {
    "name": "k",
    "target": "npu:910B3",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 4096, "mode": "in"},
        {"name": "y", "dtype": "f32", "elements": 4096, "mode": "out"}
    ],
    "sizes": {}, "extents": {}, "cut": {}, "blocks": [{"BX0": 1024}], "grid": [["X0", "BX0"]], "cores": 40
}
"""


def test_a_kernel_that_keeps_the_rules() -> None:
    assert _core.check_kernel_text(TEXT) == []
    for target, *_ in _core.npu_targets():
        assert _core.check_kernel_text(TEXT, target) == []


def test_what_is_wrong_has_line_rule_and_message() -> None:
    text = TEXT.replace("x_ptr + x0)", "x_ptr + x0 // 3)")
    assert [(line, rule) for line, rule, _ in _core.check_kernel_text(text)] == [
        (9, "pointer"),
        (9, "division"),
    ]


def test_text_that_cannot_be_read() -> None:
    [(line, rule, message)] = _core.check_kernel_text(TEXT.replace("for tile in", "for in"))
    assert (line, rule, message) == (7, "syntax", "expected 'in', found 'range'")


def test_unknown_target_lists_those_that_there_are() -> None:
    with pytest.raises(kerf.KerfError, match="npu:910B3, npu:910_9382, npu:950"):
        _core.check_kernel_text(TEXT, "npu:310")
