"""Kernel or library call: the rows that decide, their reports, and that nothing repeated changes them."""

import importlib
import subprocess
import sys
import threading

import kerf
import pytest
import torch
from compare import compare
from kerf import UserError, compile_for
from torch.nn import functional

NPUS = ["npu:910B3", "npu:910_9382", "npu:950"]


def _softmax(x):
    return torch.softmax(x * 2, -1)


def _loss(x, target):
    return functional.cross_entropy(x, target)


def _plan(f, *inputs, target="npu:910B3", **options):
    return compile_for(f, inputs, target=target, **options)


def _calls(plan):
    return [e.op for e in plan.externs if not e.is_library]


# softmax by width


@pytest.mark.parametrize("target", NPUS)
@pytest.mark.parametrize(("width", "options", "is_call"), [
    (256, {}, False),
    (257, {}, True),
    (257, {"softmax_width": 0}, False),
    (65, {"softmax_width": 64}, True),
    (64, {"softmax_width": 64}, False),
])  # fmt: skip
def test_softmax_by_width(target, width, options, is_call):
    plan = _plan(_softmax, torch.randn(64, width), target=target, **options)
    assert _calls(plan) == ["aten._softmax.default"] * is_call
    (route,) = plan.routes
    assert (route.op, route.choice) == ("softmax", "library" if is_call else "kernel")
    assert f"1 x softmax as {route.choice}: {route.reason}" in plan.report()
    for extern in plan.externs:
        assert extern.reason == route.reason
        assert f"{width} elements, more than {options.get('softmax_width', 256)}" in extern.reason


def test_the_width_is_that_of_the_dimension():
    for dim, is_call in ((0, True), (1, False)):
        plan = _plan(lambda x, dim=dim: torch.softmax(x, dim), torch.randn(300, 100))
        assert bool(_calls(plan)) == is_call


def test_other_targets_keep_their_kernels():
    plan = _plan(_softmax, torch.randn(64, 5000), target="cuda")
    assert not plan.externs
    assert plan.routes[0].choice == "kernel"


def test_a_wide_softmax_has_its_gradient_in_a_kernel():
    plan = _plan(_softmax, torch.randn(64, 512, requires_grad=True), training=True)
    assert _calls(plan) == ["aten._softmax.default"]
    assert [k.axes for k in plan.kernels if k.graph == "0 backward"] == [(64, 512)]


def test_the_loss_follows_its_log_softmax():
    inputs = torch.randn(64, 512, requires_grad=True), torch.randint(0, 512, (64,))
    plan = _plan(_loss, *inputs)
    assert _calls(plan) == ["aten._log_softmax.default", "aten.nll_loss_forward.default"]
    assert [r.choice for r in plan.routes] == ["library", "library"]
    routes = _plan(_loss, *inputs, target="cuda").routes
    assert [r.choice for r in routes] == ["kernel", "kernel"]


def test_safe_softmax_and_dtype():
    x = torch.randn(64, 300, dtype=torch.bfloat16)
    assert _calls(_plan(lambda x: torch.ops.aten._safe_softmax(x, -1), x)) == ["aten._safe_softmax.default"]
    plan = _plan(lambda x: torch.softmax(x, -1, dtype=torch.float32), x)
    assert _calls(plan) == ["aten._softmax.default"]
    (kernel,) = plan.kernels  # the conversion
    assert 'out_ptr"' not in kernel.text and kernel.axes == (64 * 300,)


def test_a_negative_width_is_refused():
    with pytest.raises(UserError, match="softmax_width must not be negative: -1"):
        _plan(_softmax, torch.randn(8, 8), softmax_width=-1)


# a width that is not known


def test_an_unknown_width_has_both_plans():
    plan = _plan(_softmax, torch.randn(64, 128), dynamic=True)
    narrow, wide = plan.routes
    size = narrow.when.removesuffix(" <= 256")
    assert (narrow.choice, wide.choice, wide.when) == ("kernel", "library", f"{size} > 256")
    (call,) = plan.externs
    assert (call.op, call.when) == ("aten._softmax.default", wide.when)
    assert {k.when for k in plan.kernels} == {narrow.when, wide.when}  # the kernel, the operand of the call
    assert f"aten._softmax.default where {wide.when}" in plan.report()
    assert plan.share == 1.0


def test_calls_of_both_plans_are_there_once():
    def f(x, y):
        return torch.softmax(x, -1), y.sin() @ y

    plan = _plan(f, torch.randn(64, 128), torch.randn(32, 32), dynamic=True)
    assert [e.op for e in plan.externs if not e.when] == ["aten.mm.default"]
    assert sorted(e.op for e in plan.externs) == ["aten._softmax.default", "aten.mm.default"]


def test_a_known_range_decides():
    x = torch.randn(64, 128)
    torch._dynamo.mark_dynamic(x, 0)
    plan = _plan(_softmax, x)
    assert [(r.choice, r.when) for r in plan.routes] == [("kernel", "")]
    plan = _plan(_softmax, torch.randn(64, 128), dynamic=True, softmax_width=0)
    assert [(r.choice, r.when) for r in plan.routes] == [("kernel", "")]


# reports on the CPU


def test_explain_shows_the_rule(capsys):
    kerf.explain(_loss, torch.randn(64, 512), torch.randint(0, 512, (64,)))
    text = capsys.readouterr().out
    assert "by which rule" in text
    assert "one kernel with the log-softmax that it reads" in " ".join(text.split())


def test_records_have_routes():
    torch.compile(_softmax, backend="kerf")(torch.randn(8, 512))
    (record,) = kerf.compilations()
    ((op, choice, reason, source),) = record.routes
    assert (op, choice) == ("softmax", "kernel")
    assert reason and "_softmax" in source
    assert record.to_dict()["routes"] == [[op, choice, reason, source]]


@pytest.mark.parametrize(("keys", "choice"), [(128, "kernel"), (384, "library")])
def test_attention_that_is_written_out(keys, choice):
    def attention(q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v

    tensors = [torch.randn(2, 2, keys, 16) for _ in range(3)]
    with torch.no_grad():
        torch.compile(attention, backend="kerf")(*tensors)
    (record,) = kerf.compilations()
    assert ("attention", choice) in [route[:2] for route in record.routes]
    plan = _plan(attention, *(torch.randn(2, 2, 512, 16) for _ in range(3)))
    assert ("attention", "kernel") in [(r.op, r.choice) for r in plan.routes]
    assert not any("for_cpu" in e.op for e in plan.externs)


# the same every time


def _described(plan):
    return plan.report(), [k.text for k in plan.kernels], plan.routes


def test_repeated_compiles_and_imports_are_the_same():
    x = torch.randn(64, 300)
    first = _described(_plan(_softmax, x))
    _plan(_softmax, x, softmax_width=0)
    importlib.reload(kerf)
    assert _described(_plan(_softmax, x)) == first


def test_threads_are_the_same():
    from kerf import _core

    text = (
        "graph\n  %0 = input 0: f32[64, 300]\n  %1 = softmax %0 dim 1 half_to_float false: f32[64, 300]\n"
        "  return %1\n"
    )
    first, found = _core.run_passes("route_npu", text), []
    assert "aten._softmax.default" in first
    threads = [
        threading.Thread(target=lambda: found.extend(_core.run_passes("route_npu", text) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [first] * 200


def test_importing_changes_no_table_of_torch():
    program = (
        "import torch; a = torch.ops.aten._softmax.default; before = dict(a.py_kernels)\n"
        "import kerf, kerf.offline.compile\n"
        "from torch._decomp import decomposition_table as t; n = len(t)\n"
        "kerf.compile_for(lambda x: torch.softmax(x, -1), (torch.randn(4, 300),), target='npu:910B3')\n"
        "assert a.py_kernels == before and len(t) == n\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# dtype= of _safe_softmax


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("wanted", [None, torch.float32, torch.float64])
def test_safe_softmax_converts_first(dtype, wanted):
    x = torch.randn(16, 40, dtype=dtype)
    x[3] = -torch.inf
    x[5, 7] = torch.nan
    x[6, 0] = torch.inf
    compare(lambda x: torch.ops.aten._safe_softmax(x, -1, wanted), x)


# the other rows of the table, as text for Ascend


def _body(text):
    return text[text.index("@triton.jit") :]


@pytest.mark.parametrize(
    ("approximate", "has", "has_not"), [("none", "erf(", "tanh("), ("tanh", "tanh(", "erf(")]
)
def test_gelu_has_its_own_form(approximate, has, has_not):
    (kernel,) = _plan(lambda x: functional.gelu(x, approximate=approximate), torch.randn(64, 64)).kernels
    text = kernel.text
    assert has in text and has_not not in text


@pytest.mark.parametrize("name", ["layer", "rms", "group", "batch"])
def test_norms_are_one_kernel_and_one_pass_back(name):
    make = {
        "layer": lambda: torch.nn.LayerNorm(64),
        "rms": lambda: torch.nn.RMSNorm(64),
        "group": lambda: torch.nn.GroupNorm(4, 64),
        "batch": lambda: torch.nn.BatchNorm1d(64),
    }
    plan = _plan(make[name](), torch.randn(512, 64, requires_grad=True), training=True)
    assert _calls(plan) == []
    # Besides one over all of the input, running statistics and the join of column sums.
    assert len([k for k in plan.kernels if k.graph == "0 forward" and len(k.axes) > 1]) == 1
    assert len([k for k in plan.kernels if k.graph == "0 backward"]) <= 2


def test_dropout_is_eagers_in_files():
    plan = _plan(lambda x: functional.dropout(x, 0.5), torch.randn(64, 64, requires_grad=True), training=True)
    assert _calls(plan) == ["aten.native_dropout.default"]


def test_variance_is_two_passes_in_f32():
    plan = _plan(lambda x: torch.var_mean(x, -1), torch.randn(64, 200))
    assert not plan.externs
    assert all("float64" not in kernel.text for kernel in plan.kernels)
    (rows,) = (k for k in plan.kernels if k.axes == (64, 200))
    assert _body(rows.text).count("tl.sum(") >= 2


@pytest.mark.parametrize("training", [False, True])
def test_products_of_a_matrix_are_folded(training):
    x = torch.randn(4, 32, 16, requires_grad=training)
    plan = _plan(lambda x, w: x @ w, x, torch.randn(16, 8, requires_grad=training), training=training)
    assert {e.op for e in plan.externs} == {"aten.mm.default"}


def test_no_kernel_reads_more_than_24_values():
    def f(*tensors):
        return sum(t.sin() for t in tensors)

    plan = _plan(f, *(torch.randn(64, 64) for _ in range(30)))
    assert not plan.externs
    for kernel in plan.kernels:
        assert _body(kernel.text).count("tl.load(") <= 24
