"""The disk cache: what a later process finds, and that it never finds what is not its own.

A fresh start is a reset of Dynamo; nothing of the cache is kept in memory. Some tests start processes.
"""

import contextlib
import dataclasses
import importlib.util
import json
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import kerf
import pytest
import torch


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("KERF_CACHE", "1")
    monkeypatch.setenv("KERF_CACHE_DIR", str(folder))
    return folder


def start(function, *inputs, **options):
    """The results of the first call after a fresh start, and how they came about (see state)."""
    torch._dynamo.reset()
    kerf.reset()
    results = torch.compile(function, backend="kerf", **options)(*inputs)
    return results, state()


def state():
    """ "traced": nothing was found; "plans": traced anew, no kernel was built; "warm": not traced."""
    compilations = kerf.compilations()
    assert compilations
    if all("import" not in c.seconds for c in compilations):
        assert all(c.cache_hit and "load" in c.seconds for c in compilations)
        return "warm"
    return "plans" if all(c.cache_hit for c in compilations) else "traced"


def check(function, make_inputs, how, **options):
    """A fresh start on make_inputs() comes about by `how` and does to results and inputs what eager does.

    `how` "anew": not warm; a plan may be found, as another function may give the same graph.
    """
    expected_inputs, inputs = make_inputs(), make_inputs()
    expected = function(*expected_inputs)
    results, came_by = start(function, *inputs, **options)
    assert came_by != "warm" if how == "anew" else came_by == how
    torch.testing.assert_close(results, expected)
    torch.testing.assert_close(inputs, expected_inputs)
    return results, inputs


def gradients(function, make_inputs, how, **options):
    """The same, with gradients of the sum of the first result."""
    expected_inputs = make_inputs()
    function(*expected_inputs).sum().backward()
    inputs = make_inputs()
    results, _ = start(function, *inputs, **options)
    results.sum().backward()
    assert state() == how
    for value, expected in zip(inputs, expected_inputs, strict=True):
        torch.testing.assert_close(value.grad, expected.grad)


def normal(*shape, grad=False, seed=0, **kwargs):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, **kwargs).requires_grad_(grad)


# Found again


def test_inference_and_training():
    def function(x, w):
        return torch.softmax(x @ w, -1) * torch.tanh(x)

    check(function, lambda: (normal(4, 4), normal(4, 4)), "traced")
    check(function, lambda: (normal(4, 4, seed=1), normal(4, 4)), "warm")
    gradients(function, lambda: (normal(4, 4, grad=True), normal(4, 4, grad=True)), "traced")
    gradients(function, lambda: (normal(4, 4, grad=True, seed=1), normal(4, 4, grad=True)), "warm")


def test_module_with_state():
    def make():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.5))

    seen = []
    for how in ("traced", "warm"):
        model, x = make(), normal(8, 6)
        torch.manual_seed(3)
        results, _ = start(model, x)
        results.sum().backward()
        assert state() == how
        seen.append((results, model[1].running_mean.clone(), model[0].weight.grad, torch.rand(2)))
    torch.testing.assert_close(seen[0], seen[1], rtol=0, atol=0)  # one random sequence


def test_forward_first_and_backward_later():
    def function(x):
        return (x * x).sum()

    start(function, normal(5, grad=True))
    gradients(function, lambda: (normal(5, grad=True),), "warm")


def test_graph_breaks():
    def function(x):
        y = torch.sin(x)
        torch._dynamo.graph_break()
        return torch.cos(y) * 2

    check(function, lambda: (normal(5),), "traced")
    check(function, lambda: (normal(5),), "warm")
    assert len(kerf.compilations()) == 2


def test_reports_are_the_same():
    def function(x, w):
        return torch.relu(x @ w) + 1

    start(function, normal(4, 4), normal(4, 4))
    (cold,) = kerf.compilations()
    start(function, normal(4, 4), normal(4, 4))
    (warm,) = kerf.compilations()
    assert warm.cache_hit and not cold.cache_hit
    for field in dataclasses.fields(kerf.Compilation):
        if field.name not in ("seconds", "cache_hit"):
            assert getattr(warm, field.name) == getattr(cold, field.name), field.name
    assert warm.source() == cold.source()


# Results, inputs and their memory


def test_mutated_inputs():
    def function(x, y):
        x.add_(y)
        y.mul_(2)
        return x * y

    check(function, lambda: (normal(3, 4), normal(3, 4, seed=1)), "traced")
    check(function, lambda: (normal(3, 4), normal(3, 4, seed=1)), "warm")


def test_results_that_alias():
    def function(x):
        y = x + 1
        return x, x.view(-1), y, y.t(), y[0], x.t()

    for how in ("traced", "warm"):
        results, (x,) = check(function, lambda: (normal(3, 4),), how)
        assert results[0] is x
        assert results[1].data_ptr() == x.data_ptr() == results[5].data_ptr()
        assert results[3].data_ptr() == results[2].data_ptr() == results[4].data_ptr()


def test_strides():
    def function(x):
        return x + 1, x.permute(2, 0, 1) * 2

    def strided():
        return (normal(2, 3, 4).permute(1, 2, 0),)

    for how in ("traced", "warm"):
        results, inputs = check(function, strided, how)
        expected = function(*inputs)
        assert [r.stride() for r in results] == [e.stride() for e in expected]
    check(function, lambda: (normal(3, 4, 2),), "traced")


def test_inputs_that_share_memory():
    def function(a, b):
        a.add_(1)
        return a * b

    def apart():
        return normal(4), normal(4, seed=1)

    def overlapping():
        base = normal(6)
        return base[:4], base[2:]

    check(function, apart, "traced")
    check(function, overlapping, "traced")
    check(function, apart, "warm")
    check(function, overlapping, "warm")
    check(function, lambda: (lambda base: (base[2:], base[:4]))(normal(6)), "traced")


def test_views_and_leaves():
    def function(x):
        with torch.no_grad():
            x.mul_(2)
        return x * 3

    def leaf():
        return (normal(4, grad=True),)

    def inner():
        return (normal(4, grad=True) * 1,)

    for make in (leaf, inner, leaf, inner):
        expected_inputs, inputs = make(), make()
        expected = function(*expected_inputs)
        results, _ = start(function, *inputs)
        torch.testing.assert_close(results, expected)
        torch.testing.assert_close(inputs, expected_inputs)


# Another graph is not mistaken for it


def load_module(path, text):
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location("changing", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function


def test_changed_source(tmp_path):
    def text(body):
        return f"import torch\nC = [1.0, 2.0]\ndef function(x):\n    return {body}\n"

    x = normal(2)
    for body in ("x * 2", "x * 3", "torch.sin(x)", "x + torch.tensor([1.0, 2.0])"):
        check(load_module(tmp_path / "a.py", text(body)), lambda: (x,), "traced")
    for body in ("x * 3", "x + torch.tensor([1.0, 2.0])"):
        check(load_module(tmp_path / "a.py", text(body)), lambda: (x,), "warm")
    check(load_module(tmp_path / "a.py", text("x + torch.tensor([1.0, 5.0])")), lambda: (x,), "anew")
    # Reports name lines: the same function further down is another.
    check(load_module(tmp_path / "a.py", "\n\n" + text("x * 3")), lambda: (x,), "traced")


def test_changed_values_outside():
    def make(factor, table, scale):
        return lambda x: (x * factor + torch.tensor(table)) * scale

    x, scale = normal(2), torch.tensor([2.0, 3.0])
    check(make(2.0, [1.0, 2.0], scale), lambda: (x,), "traced")
    check(make(2.0, [1.0, 2.0], scale), lambda: (x,), "warm")
    check(make(2.0, [1.0, 2.0], scale * 2), lambda: (x,), "warm")  # a tensor outside is an input
    check(make(2.5, [1.0, 2.0], scale), lambda: (x,), "traced")
    check(make(2.0, [1.0, 2.5], scale), lambda: (x,), "anew")


def test_changed_inputs():
    def function(x):
        return x.sum(0) * 2

    variants = [
        lambda: (normal(3, 4),),
        lambda: (normal(4, 4),),
        lambda: (normal(3, 4).double(),),
        lambda: (normal(4, 3).t(),),
        lambda: (normal(3, 4, grad=True),),
    ]
    for how in ("traced", "warm"):
        for make in variants:
            check(function, make, how)


def test_changed_modes_of_torch():
    def function(x):
        return torch.zeros(2) + x @ x

    def under(manager, how):
        with manager:
            check(function, lambda: (normal(2, 2, grad=True),), how)

    for how in ("anew", "warm"):
        under(contextlib.nullcontext(), how)
        under(torch.no_grad(), how)
        under(torch.autocast("cpu", dtype=torch.bfloat16), how)
    under(torch.autocast("cpu", dtype=torch.float16), "traced")
    torch.set_default_dtype(torch.float64)
    try:
        check(function, lambda: (normal(2, 2, dtype=torch.float32),), "traced")
    finally:
        torch.set_default_dtype(torch.float32)


def test_autocast_inside():
    def make(dtype):
        def function(x, w):
            with torch.autocast("cpu", dtype=dtype):
                return (x @ w).float() * 2

        return function

    def inputs():
        return normal(4, 4, grad=True), normal(4, 4, grad=True, seed=1)

    gradients(make(torch.bfloat16), inputs, "traced")
    gradients(make(torch.bfloat16), inputs, "warm")
    gradients(make(torch.float16), inputs, "traced")


def test_changed_options(monkeypatch):
    def function(x):
        return torch.exp(x) * 2

    def make():
        return (normal(40, grad=True),)

    gradients(function, make, "traced")
    gradients(function, make, "traced", options={"opt_level": 0})
    gradients(function, make, "warm", options={"opt_level": 0})
    gradients(function, make, "plans", options={"partition": "min_cut"})
    gradients(function, make, "warm")
    monkeypatch.setenv("KERF_CPU", "avx2")
    gradients(function, make, "traced")
    monkeypatch.delenv("KERF_CPU")
    monkeypatch.setattr(torch, "__version__", torch.__version__ + "x")
    gradients(function, make, "plans")


def test_texts_are_compiled_anew(tmp_path):
    def function(x):
        return torch.exp(x) * 2

    start(function, normal(4))
    start(function, normal(4), options={"dump": str(tmp_path / "dump")})
    assert list((tmp_path / "dump").iterdir())


# Dynamic sizes


def test_dynamic_sizes_and_their_guards():
    def function(x):
        return x * 2 if x.shape[0] > 5 else x.sum(1) + x.shape[0]

    def make(n):
        return lambda: (normal(n, 4),)

    check(function, make(8), "traced", dynamic=True)
    check(function, make(9), "warm", dynamic=True)
    check(function, make(3), "traced", dynamic=True)
    check(function, make(5), "warm", dynamic=True)
    check(function, make(7), "warm", dynamic=True)
    # One compiled function across both guards.
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="kerf", dynamic=True)
    for n in (8, 3, 6, 4, 20):
        torch.testing.assert_close(compiled(normal(n, 4)), function(normal(n, 4)))


def test_guards_of_tracing():
    """Broadcasting compares sizes: no entry for equal sizes serves a size of one."""

    def function(x, y):
        return (x + y).sum()

    for how in ("traced", "warm"):
        for n, m in ((6, 6), (6, 1)):
            check(function, lambda n=n, m=m: (normal(n, 3), normal(m, 3)), how, dynamic=True)


def test_dynamic_training():
    def function(x):
        return torch.tanh(x).reshape(-1) * x.shape[0]

    for n, how in ((4, "traced"), (7, "warm")):
        gradients(function, lambda n=n: (normal(n, 3, grad=True),), how, dynamic=True)


# What cannot be kept


def test_custom_operators_are_traced_anew():
    for factor in (2, 3):
        with torch.library._scoped_library("kerf_test_cache", "FRAGMENT") as library:
            library.define("scale(Tensor x) -> Tensor")
            library.impl("scale", lambda x, factor=factor: x * factor, "CompositeImplicitAutograd")

            def function(x):
                return torch.ops.kerf_test_cache.scale(x) + 1

            check(function, lambda: (normal(4),), "traced")


def test_python_steps():
    def function(x):
        return (x * (1 + 2j)).real + 1  # complex numbers are no argument that a plan holds

    check(function, lambda: (normal(4),), "traced")
    check(function, lambda: (normal(4),), "plans")


def test_a_graph_that_torch_refuses(caplog):
    @torch.compiler.allow_in_graph
    def unknown(x):
        return x * 2

    def function(x):
        return unknown(x) + 1

    check(function, lambda: (normal(4),), "traced")
    with caplog.at_level(logging.INFO, "kerf"):
        check(function, lambda: (normal(4),), "plans")
    assert "torch refused to cache a trace" in caplog.text


def test_a_torch_without_such_a_cache(monkeypatch):
    monkeypatch.setattr(kerf.trace_cache, "MISSING", "it has none")
    check(lambda x: torch.exp(x) * 2, lambda: (normal(4),), "traced")
    check(lambda x: torch.exp(x) * 2, lambda: (normal(4),), "anew")


def test_other_backends_keep_torchs_cache(tmp_path, monkeypatch):
    start(lambda x: x + 1, normal(3))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "torch"))
    cache = torch._functorch._aot_autograd.autograd_cache.AOTAutogradCache
    cache._write_to_local_cache("key", b"\x80\x04N.")
    assert list(cache.iterate_over_candidates(True, None, "key")) == [(None, b"\x80\x04N.", True)]


# Faults of the directory


def messages(caplog):
    return [record.message for record in caplog.records if record.name == "kerf"]


def entries(directory, traces):
    found = [path for path in directory.iterdir() if path.name.startswith("trace") == traces]
    assert found
    return found


def middle_flipped(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize("traces", [False, True])
@pytest.mark.parametrize(
    "damage", [middle_flipped, lambda data: data[:-3], lambda _: b"", lambda d: b"x" * 99]
)
def test_damaged_entries_are_rebuilt(directory, caplog, traces, damage):
    def function(x):
        return torch.exp(x).sum(0) * 2

    def make():
        return (normal(6, 5, grad=True),)

    gradients(function, make, "traced")
    for path in entries(directory, traces):
        path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING, "kerf"):
        gradients(function, make, "plans" if traces else "traced")
    assert len(messages(caplog)) == (1 if traces else 2)
    assert all("is damaged: ignored, compiling again" in message for message in messages(caplog))
    caplog.clear()
    gradients(function, make, "warm")
    assert not messages(caplog)


def test_missing_plans_are_rebuilt(directory):
    def function(x):
        return torch.exp(x).sum(0) * 2

    check(function, lambda: (normal(6, 5),), "traced")
    for path in entries(directory, traces=False):
        path.unlink()
    check(function, lambda: (normal(6, 5),), "traced")
    check(function, lambda: (normal(6, 5),), "warm")


def test_a_directory_that_cannot_be_used(directory, caplog):
    directory.write_text("a file")
    with caplog.at_level(logging.WARNING, "kerf"):
        for factor in (2, 3):
            check(lambda x, factor=factor: torch.exp(x) * factor, lambda: (normal(4),), "traced")
    assert [message.partition(" (")[0] for message in messages(caplog)] == ["the compile cache does not work"]


def test_off_switches(directory, monkeypatch):
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
    assert not directory.exists()


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


def test_processes_share_the_directory(tmp_path, directory):
    both = [launch(tmp_path), launch(tmp_path)]
    for process in both:
        _, errors = answer(process)
        assert "cache" not in errors
    assert answer(launch(tmp_path))[0] == [[True, True], 1]
    assert not [path for path in directory.iterdir() if path.suffix != ".kerf"]
