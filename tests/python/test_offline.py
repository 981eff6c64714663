"""Kernel files for targets without the device: what compile_for makes of models, and that it is right."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
from kerf import UserError, _core, compile_for
from kerf.offline import kernel_main
from kerf.offline.compile import description

EXAMPLES = Path(__file__).parents[2] / "examples"
NPUS = ["npu:910B3", "npu:910_9382", "npu:950"]


def _flux():
    spec = importlib.util.spec_from_file_location("flux_blocks", EXAMPLES / "flux_blocks.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["flux_blocks"] = module
    spec.loader.exec_module(module)
    return module


class Mixed(torch.nn.Module):
    """Norms, a softmax, an activation, slices that are put together again, a transpose."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(96)
        self.linear = torch.nn.Linear(96, 288)
        self.out = torch.nn.Linear(96, 96)

    def forward(self, x):
        q, k, v = self.linear(self.norm(x)).view(*x.shape[:-1], 3, 96).unbind(-2)
        weights = torch.softmax(q @ k.transpose(-1, -2), dim=-1)
        mixed = torch.nn.functional.gelu(weights @ v, approximate="tanh")
        return torch.cat((self.out(mixed), x), dim=-1).tanh() + mixed.repeat(1, 1, 2)


def _mixed(target, **kwargs):
    torch.manual_seed(0)
    return compile_for(Mixed(), (torch.randn(4, 40, 96),), target=target, **kwargs)


@pytest.mark.parametrize("target", [*NPUS, "cuda"])
def test_every_kernel_keeps_the_rules(target):
    plan = _mixed(target, training=True)
    assert len(plan.kernels) >= 5
    for kernel in plan.kernels:
        ast.parse(kernel.text)
        assert _core.check_kernel_text(kernel.text, target) == [], kernel.text
        assert all(access.affine for access in kernel.accesses)
        assert kernel.source and kernel.uses >= 1


@pytest.mark.parametrize("target", ["npu:910B3", "cuda"])
def test_all_but_products_is_compiled(target):
    plan = _mixed(target, training=True)
    assert [e.op for e in plan.externs if not e.is_library] == []
    assert plan.share == 1.0


def test_flux_blocks_have_their_axes():
    flux = _flux()
    config = flux.small()
    torch.manual_seed(0)
    plan = compile_for(
        flux.FluxBlocks(config), flux.example_inputs(config), target="npu:910B3", training=True
    )
    assert [e.op for e in plan.externs if not e.is_library] == []
    for kernel in plan.kernels:
        assert all(access.affine for access in kernel.accesses), kernel.name
        assert _core.check_kernel_text(kernel.text, "npu:910B3") == [], kernel.text
    # The slices of the linear that makes queries, keys and values: tokens, heads, channels.
    axes = {kernel.axes for kernel in plan.kernels}
    tokens = config.text_tokens + config.image_tokens
    assert any(a[-1] == config.head_dim and tokens in a and config.heads in a for a in axes)


def _expect(name, text):
    """The text is what the file says; KERF_WRITE_EXPECTED=1 writes it."""
    path = Path(__file__).parent / "expected" / name
    if os.environ.get("KERF_WRITE_EXPECTED"):
        path.write_text(text)
    assert text == path.read_text()


GRAPHS_OF_2_13 = pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="other versions of torch trace other graphs"
)


@GRAPHS_OF_2_13
def test_full_flux_has_the_axes_of_the_report():
    flux = _flux()
    config = flux.FluxConfig()
    with torch.device("meta"):
        model = flux.FluxBlocks(config)
    plan = compile_for(
        model,
        flux.example_inputs(config, device="meta"),
        target="npu:910B3",
        training=True,
        softmax_width=0,  # on meta attention is written out
    )
    assert plan.share == 1.0
    assert all(access.affine for kernel in plan.kernels for access in kernel.accesses)
    rows = [f"{k.graph}  {' x '.join(map(str, k.axes))}  {k.uses} times  {k.name}" for k in plan.kernels]
    _expect("flux_axes.txt", "\n".join(rows) + "\n")


class SlicesOfALinear(torch.nn.Module):
    """A single-stream block's linear: queries, keys, values and the feed-forward's input, 21504 columns."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3072, 21504)

    def forward(self, x, *factors):
        qkv, mlp = self.linear(x).split((9216, 12288), dim=-1)
        q, k, v = qkv.view(1, 512, 3, 24, 128).permute(2, 0, 3, 1, 4)
        return tuple(part * factor for part, factor in zip((q, k, v, mlp), factors, strict=True))


@GRAPHS_OF_2_13
@pytest.mark.parametrize("target", ["npu:910B3", "cuda"])
def test_slices_of_a_linear_go_back_in_one_kernel(target):
    with torch.device("meta"):
        model, x = SlicesOfALinear(), torch.randn(1, 512, 3072)
        heads = [torch.randn(1, 24, 512, 128) for _ in range(3)]
        mlp = torch.randn(1, 512, 12288)
    plan = compile_for(model, (x, *heads, mlp), target=target, training=True)
    whole = {k.axes: k for k in plan.kernels if any(a.is_store and "21504*" in a.index for a in k.accesses)}
    assert set(whole) == {(512, 3, 24, 128), (512, 12288)}
    assert all(access.affine for k in whole.values() for access in k.accesses)
    _expect(f"slices_{target.partition(':')[0]}.txt", whole[512, 3, 24, 128].text)


def test_a_backward_pass_that_meta_drops_is_an_error():
    with torch.device("meta"):
        linear, x, labels = torch.nn.Linear(8, 5), torch.randn(4, 8), torch.zeros(4, dtype=torch.long)

    def loss(x, labels):
        return torch.nn.functional.cross_entropy(linear(x), labels)

    with pytest.warns(UserWarning, match="nll_loss"), pytest.raises(UserError, match="put the model"):
        compile_for(loss, (x, labels), target="npu:910B3", training=True)


def test_dynamic_sizes():
    plan = _mixed("npu:910B3", dynamic=True)
    assert any(isinstance(extent, str) for kernel in plan.kernels for extent in kernel.axes)
    for kernel in plan.kernels:
        ast.parse(kernel.text)


def test_rows_are_kernels_and_single_elements_library_calls_with_a_reason():
    def embedded(i, w):
        return torch.nn.functional.embedding(i, w) * 2

    index = torch.randint(0, 9, (16,))
    plan = compile_for(embedded, (index, torch.randn(9, 32)), target="npu:910B3")
    assert len(plan.kernels) == 1 and not plan.externs
    assert all(a.affine for a in plan.kernels[0].accesses)
    plan = compile_for(embedded, (index, torch.randn(9, 1)), target="npu:910B3")
    (extern,) = [e for e in plan.externs if not e.is_library]
    assert extern.op == "aten.embedding.default"
    assert "npu:910B3" in extern.reason and "test_offline.py" in extern.source
    assert len(plan.kernels) == 1


def test_doubles_are_library_calls():
    plan = compile_for(lambda x: x.exp() + 1, (torch.randn(8, dtype=torch.float64),), target="npu:910B3")
    assert not plan.kernels
    assert all("f64" in e.reason for e in plan.externs)


def test_a_scan_has_no_tiles():
    plan = compile_for(lambda x: x.cumsum(0), (torch.randn(64, 8),), target="cuda")
    assert not plan.kernels
    assert "from one iteration to the next" in plan.externs[0].reason


def test_unknown_target_lists_those_there_are():
    with pytest.raises(UserError, match=r"no target 'npu:7'; there are cuda, npu:910B3"):
        _mixed("npu:7")


def test_saved_numbers_are_those_of_eager(tmp_path):
    """The interpreter's numbers in a saved file, against torch on the same inputs."""
    plan = compile_for(
        lambda x, y: torch.softmax(x, -1) * y, (torch.randn(9, 33), torch.randn(9, 33)), target="cuda"
    )
    (path,) = plan.save(tmp_path)
    info = description(path.read_text())
    assert info["cut"] == info["extents"]  # so small that nothing is cut
    x, y = (kernel_main.make_buffer(i, b).view(9, 33) for i, b in enumerate(info["buffers"][:2]))
    saved = numpy.load(path.with_suffix(".npz"))
    name = info["buffers"][2]["name"]
    wanted = torch.softmax(x.double(), -1) * y.double()
    assert (saved[name + "_at"] == numpy.arange(9 * 33)).all()
    numpy.testing.assert_allclose(saved[name].reshape(9, 33), wanted.numpy(), rtol=1e-5, atol=1e-7)


class _Writes:
    """A kernel that writes these values."""

    def __init__(self, values):
        self.values = torch.tensor(values)

    def __getitem__(self, grid):
        return lambda out, **_: out.copy_(self.values)


@pytest.mark.parametrize(("dtype", "off", "right"), [("f32", 1, True), ("i32", 1, False), ("i32", 0, True)])
def test_whole_numbers_are_right_or_wrong(tmp_path, dtype, off, right):
    """A tolerance of 1e-5 of 1,000,000 is not 1."""
    numpy.savez(tmp_path / "k.npz", y_at=numpy.arange(2), y=numpy.array([3, 1_000_000]))
    info = {"name": "k", "target": "cpu", "grid": [[2, 1]], "cut": {}, "blocks": [{}], "sizes": {}}
    info |= {"buffers": [{"name": "y", "dtype": dtype, "cut_elements": 2, "mode": "out"}]}
    info |= {"tolerance": 1e-5}
    kernel = _Writes([3, 1_000_000 + off])
    if right:
        kernel_main.check(kernel, info, tmp_path / "k.npz")
    else:
        with pytest.raises(AssertionError, match="k: y is wrong by 1e-06 of its largest value"):
            kernel_main.check(kernel, info, tmp_path / "k.npz")


def test_a_kernel_that_writes_more_than_it_should_is_seen(tmp_path):
    """On the CPU too, where a tensor's copy `to` its own device is itself."""
    numpy.savez(tmp_path / "k.npz", y_at=numpy.array([1]), y=numpy.array([4.0]))
    info = {"name": "k", "target": "cpu", "grid": [[2, 1]], "cut": {}, "blocks": [{}], "sizes": {}}
    info |= {"buffers": [{"name": "y", "dtype": "f32", "cut_elements": 2, "mode": "out"}]}
    info |= {"tolerance": 1e-5}
    with pytest.raises(AssertionError, match="k: something is written to y outside its domain"):
        kernel_main.check(_Writes([3.0, 4.0]), info, tmp_path / "k.npz")


def test_bools_between_those_of_a_kernel_stay_as_they_were(tmp_path):
    """Copies of a bool tensor make 1 of any other byte than 0."""
    numpy.savez(tmp_path / "k.npz", y_at=numpy.array([1]), y=numpy.array([True]))
    info = {"name": "k", "target": "cpu", "grid": [[2, 1]], "cut": {}, "blocks": [{}], "sizes": {}}
    info |= {"buffers": [{"name": "y", "dtype": "bool", "cut_elements": 3, "mode": "out"}], "tolerance": 0}
    kernel_main.check(_Writes([True, True, True]), info, tmp_path / "k.npz")
    with pytest.raises(AssertionError, match="k: something is written to y outside its domain"):
        kernel_main.check(_Writes([True, True, False]), info, tmp_path / "k.npz")


def test_equal_kernels_are_saved_once(tmp_path):
    def model(x, w):
        return torch.tanh(torch.tanh(x @ w) @ w)

    plan = compile_for(model, (torch.randn(16, 16), torch.randn(16, 16)), target="cuda")
    assert sum(kernel.uses for kernel in plan.kernels) == 2
    assert len(plan.save(tmp_path, expected=False)) == len(plan.kernels)
    assert (tmp_path / "plan.json").is_file()


def test_difference_judges():
    one, two = numpy.array([1.0, numpy.nan, numpy.inf]), numpy.array([1.0, numpy.nan, numpy.inf])
    assert kernel_main.difference(one, two, 1e-6, 0) == (0.0, True)
    assert not kernel_main.difference(numpy.array([1.0, 2.0]), numpy.array([1.0, 2.1]), 1e-3, 1e-6)[1]
    assert not kernel_main.difference(numpy.array([numpy.nan]), numpy.array([1.0]), 1e-3, 1e-6)[1]
    off, bounds = numpy.array([1.0, 3e-7, 3e-7]), numpy.array([0.0, 1e-6, 1e-7])  # of what is 0 in truth
    assert kernel_main.difference(off[:2], numpy.array([1.0, 1e-8]), 1e-8, bounds[:2])[1]
    assert not kernel_main.difference(off, numpy.array([1.0, 1e-8, 1e-8]), 1e-8, bounds)[1]


def test_command_line(tmp_path):
    (tmp_path / "model.py").write_text("import torch\nmodel = torch.nn.GELU()\ninputs = (torch.randn(64),)\n")
    run = [sys.executable, "-c", "from kerf.cli import app; app()", "compile"]
    done = subprocess.run(
        [*run, str(tmp_path / "model.py"), "--target", "npu:950", "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "1 kernels for npu:950" in done.stdout
    assert len(list((tmp_path / "out").glob("*.npz"))) == 1
    (tmp_path / "empty.py").write_text("model = 1\n")
    done = subprocess.run(
        [*run, str(tmp_path / "empty.py"), "--target", "npu:950", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "defines no inputs" in done.stderr


def test_sorts_between_kernels_are_library_calls():
    plan = compile_for(
        lambda x: x.sort(-1).values.flip(0).roll(3, 0) + 1, (torch.randn(12, 16),), target="npu:910B3"
    )
    assert {e.op for e in plan.externs} >= {"aten.sort.default"}
    assert all(access.affine for kernel in plan.kernels for access in kernel.accesses)
