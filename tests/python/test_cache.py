"""The disk cache: what a later start finds, and that it never finds what is not its own."""

import contextlib
import dataclasses
import importlib.util
import logging
import textwrap

import kerf
import pytest
import torch
from fresh_start import check, gradients, normal, start, state

pytestmark = pytest.mark.usefixtures("cache_directory")


# Found again


def test_inference_and_training():
    def function(x, w):
        return torch.softmax(x @ w, -1) * torch.tanh(x)

    check(function, lambda: (normal(4, 4), normal(4, 4)), "traced")
    check(function, lambda: (normal(4, 4, seed=1), normal(4, 4)), "warm")
    gradients(function, lambda: (normal(4, 4, grad=True), normal(4, 4, grad=True)), "traced")
    gradients(function, lambda: (normal(4, 4, grad=True, seed=1), normal(4, 4, grad=True)), "warm")


def test_kernels_that_share_objects():
    def function(*xs):
        return [torch.softmax(x, -1) for x in xs]

    many = range(2, 8 * torch.multiprocessing.cpu_count() + 2)
    for how in ("traced", "warm"):
        check(function, lambda: [normal(n, n + 1) for n in many], how)
    (record,) = kerf.compilations()
    assert record.unique_kernels == len(many)


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
    gradients(function, make, "anew", options={"partition": "min_cut"})
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


def test_floats_that_change():
    """A bound that tracing fixes: torch's cache has no guard on it."""

    def function(x, limit):
        return torch.nn.functional.silu(x).clamp(max=limit) * x.clamp(min=-limit, max=limit)

    for _ in range(2):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="kerf")
        for limit in (1.0, 2.0, 7.0, 0.25):
            x = normal(3, 4, grad=True) * 4
            torch.testing.assert_close(compiled(x, limit), function(x, limit))
