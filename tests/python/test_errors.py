"""What a user sees when something is wrong: the class, the text, and the path by which it comes."""

import builtins

import kerf
import pytest
import torch
import torch.nn.functional as F
from kerf import _core, backend, debug
from kerf.backend import check_torch_version
from torch._dynamo.exc import BackendCompilerFailed


def _compile_error(**kwargs) -> Exception:
    """The error of a compile, as Dynamo wraps it."""
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(lambda x: x + 1, backend="kerf", **kwargs)(torch.ones(3))
    return caught.value.inner_exception


def test_unknown_option_lists_the_valid_ones():
    error = _compile_error(options={"fallback_randm": True})
    assert isinstance(error, kerf.UserError)
    assert "did you mean fallback_random?" in str(error)
    assert "opt_level" in str(error)


def test_option_of_a_wrong_type():
    assert "must be bool" in str(_compile_error(options={"cache": 1}))
    assert "0 or 2" in str(_compile_error(options={"opt_level": 1}))


def test_unknown_mode():
    error = _compile_error(mode="fastest")
    assert isinstance(error, kerf.UserError)
    assert "max-autotune" in str(error)


@pytest.mark.parametrize("version", ["2.11.0", "2.12.1+cpu", "2.13.0a0+git1", "2.14.0.dev20260801"])
def test_supported_torch(version):
    check_torch_version(version)


@pytest.mark.parametrize("version", ["2.10.1", "2.15.0", "3.0.0"])
def test_unsupported_torch(version):
    with pytest.raises(kerf.UserError, match="supports torch 2.11 to 2.14"):
        check_torch_version(version)


def test_unsupported_torch_as_the_user_meets_it(monkeypatch):
    monkeypatch.setattr(backend, "SUPPORTED_TORCH", ((1, 13), (2, 0)))
    error = _compile_error()
    assert isinstance(error, kerf.UserError)
    assert str(error) == f"Kerf supports torch 1.13 to 2.0; this is torch {torch.__version__}"


@pytest.mark.parametrize(
    "function",
    [lambda x: x + 1, lambda x: (x + 1).cpu(), lambda x: x + torch.ones(3, device="meta")],
    ids=["argument", "mixed", "inside"],
)
def test_another_device(function):
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(function, backend="kerf")(torch.ones(3, device="meta"))
    assert isinstance(caught.value.inner_exception, kerf.UserError)
    assert "is on meta" in str(caught.value.inner_exception)


def test_write_to_elements_that_a_view_holds_twice():
    def function(x, sizes, strides):
        x.as_strided(sizes, strides).mul_(2)
        return x + 0

    compiled = torch.compile(function, backend="kerf", dynamic=False)
    for sizes, strides in (((4, 2), (1, 1)), ((5, 2), (1, 2)), ((2, 2), (0, 1))):
        with pytest.raises(BackendCompilerFailed, match="holds elements twice"):
            compiled(torch.ones(9), sizes, strides)
    for sizes, strides in (((2, 3), (3, 1)), ((2, 3), (3, 2)), ((3,), (2,))):
        assert torch.equal(compiled(torch.ones(9), sizes, strides), function(torch.ones(9), sizes, strides))


def test_another_device_made_inside():
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(lambda x: (x + 1, torch.ones(3, device="meta") * 2), backend="kerf")(torch.ones(3))
    error = caught.value.inner_exception
    assert isinstance(error, kerf.UserError)
    assert str(error) == "Kerf compiles for the CPU only; a tensor of this graph is on meta"


_TABLE = torch.arange(15.0).reshape(5, 3)

# Operator -> a use of it that reads or writes rows `i`; eager raises IndexError or RuntimeError.
_INDEXED = {
    "index": lambda t, i: t[i] * 2,
    "embedding": lambda t, i: F.embedding(i, t) + 1,
    "index_select": lambda t, i: t.index_select(0, i) + 1,
    "gather": lambda t, i: t.gather(0, i[:, None]) + 1,
    "scatter": lambda t, i: t.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda t, i: t.scatter_add(0, i[:, None], torch.ones(2, 1)),
    "scatter_reduce": lambda t, i: t.scatter_reduce(0, i[:, None], torch.ones(2, 1), "amax"),
    "index_add": lambda t, i: t.index_add(0, i, torch.ones(2, 3)),
    "index_copy": lambda t, i: t.index_copy(0, i, torch.ones(2, 3)),
    "index_fill": lambda t, i: t.index_fill(0, i, 1.0),
    "index_put": lambda t, i: t.index_put((i,), torch.ones(2, 3)),
    "index_put_add": lambda t, i: t.index_put((i,), torch.ones(2, 3), accumulate=True),
    "nll_loss": lambda t, i: F.nll_loss(t.mT[:2], i),
    "cross_entropy": lambda t, i: F.cross_entropy(t.mT[:2], i),
    "take": lambda t, i: t.take(i * 3),
    "embedding_bag": lambda t, i: F.embedding_bag(i[None], t),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", _INDEXED.values(), ids=_INDEXED)
def test_index_out_of_range_is_eagers_error(function, dynamic):
    table, good = _TABLE.clone(), torch.tensor([0, 4])
    compiled = torch.compile(function, backend="kerf", dynamic=dynamic)
    for bad in (5, -6, 1 << 40, -(1 << 62)):
        index = torch.tensor([0, bad])
        with pytest.raises((IndexError, RuntimeError)) as eager:
            function(_TABLE, index)
        wanted = IndexError if isinstance(eager.value, IndexError) else RuntimeError
        with pytest.raises(wanted) as caught:
            compiled(table, index)
        if isinstance(caught.value, kerf.KerfError):
            assert f"index {bad} is out of bounds for a dimension of size 5" in str(caught.value)
            assert "test_errors.py" in str(caught.value)
        assert torch.equal(table, _TABLE)
    torch.testing.assert_close(compiled(table, good), function(_TABLE, good), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremum_of_nothing_is_eagers_error(name):
    """Tracing does not refuse these; torch's amax, argmax and the like it does."""
    extremum = getattr(torch, name)
    for function in (extremum, lambda x: extremum(x, 0), lambda x: extremum(x[x.isfinite()])):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="kerf", dynamic=True)
        torch.testing.assert_close(compiled(_TABLE), function(_TABLE), rtol=0, atol=0)
        with pytest.raises((IndexError, RuntimeError), match="Expected reduction dim"):
            compiled(torch.empty(0, 3))


@pytest.mark.parametrize("name", ["scatter", "index_put", "index_add"])
def test_nothing_is_written_outside(name):
    """The written tensor lies in the middle of a larger one."""
    memory = torch.zeros(15, 3)

    def function(rows, i):
        rows.copy_(_INDEXED[name](rows, i))
        return rows.sum()

    compiled = torch.compile(function, backend="kerf")
    for bad in (5, 9, -6, -9):
        with pytest.raises((IndexError, RuntimeError)):
            compiled(memory[5:10], torch.tensor([0, bad]))
        assert torch.equal(memory[:5], torch.zeros(5, 3))
        assert torch.equal(memory[10:], torch.zeros(5, 3))


def test_index_error_in_the_middle_of_training():
    model = torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.Linear(4, 2))
    compiled = torch.compile(model, backend="kerf")
    compiled(torch.tensor([[1, 2]])).sum().backward()
    before = [parameter.grad.clone() for parameter in model.parameters()]
    with pytest.raises(IndexError, match="index 10 is out of bounds for a dimension of size 10"):
        compiled(torch.tensor([[1, 10]]))
    assert all(torch.equal(a, p.grad) for a, p in zip(before, model.parameters(), strict=True))
    compiled(torch.tensor([[1, 2]])).sum().backward()
    assert all(torch.equal(2 * a, p.grad) for a, p in zip(before, model.parameters(), strict=True))


def test_index_error_is_both_of_eagers():
    with pytest.raises(kerf.IndexError) as caught:
        torch.compile(_INDEXED["gather"], backend="kerf")(_TABLE, torch.tensor([0, 7]))
    for kind in (kerf.KerfError, builtins.IndexError, builtins.RuntimeError):
        assert isinstance(caught.value, kind)


def test_assertions_about_values_are_steps():
    """F.one_hot asserts that its labels fit; a step without a result that everything else goes around."""

    def function(labels, w):
        return (F.one_hot(labels, 5).float() @ w).exp().sum()

    compiled = torch.compile(function, backend="kerf")
    labels, w = torch.tensor([1, 4]), torch.rand(5, 3, requires_grad=True)
    kerf.reset()
    torch.testing.assert_close(compiled(labels, w), function(labels, w))
    assert all(record.kernels for record in kerf.compilations())
    for bad, text in ((5, "smaller than num_classes"), (-1, "non-negative")):
        with pytest.raises(RuntimeError, match=text):
            compiled(torch.tensor([1, bad]), w)


def test_integer_division_by_zero():
    compiled = torch.compile(lambda x, y: x // y + 1, backend="kerf")
    with pytest.raises(RuntimeError, match="(?i)division"):
        compiled(torch.tensor([1, 2]), torch.tensor([1, 0]))
    assert compiled(torch.tensor([4, 6]), torch.tensor([2, 3])).tolist() == [3, 3]


def test_out_of_memory_is_eagers_class():
    def function(x):
        return torch.sort(x.expand(10**7, 10**7) + 1)[0]

    with pytest.raises(RuntimeError, match="(?i)memory"):
        torch.compile(function, backend="kerf")(torch.ones(1))


def test_a_build_without_llvm_says_so_once(monkeypatch, caplog):
    monkeypatch.setattr(_core, "code_generator", lambda: "interpreter")
    monkeypatch.setattr(debug, "_said", set())
    for size in (3, 4):
        torch.compile(lambda x: x + 1, backend="kerf", dynamic=False)(torch.ones(size))
    assert caplog.text.count("has no LLVM") == 1


def test_error_of_a_library_call_comes_as_it_is():
    # Without check_errors, tracing with torch 2.12 forgets to ask whether the call succeeded.
    function = lambda x: torch.linalg.cholesky_ex(x, check_errors=True).L + 1  # noqa: E731
    compiled = torch.compile(function, backend="kerf")
    with pytest.raises(torch.linalg.LinAlgError):
        compiled(-torch.eye(3))


def test_one_base():
    for error in (kerf.UserError, kerf.RuntimeError, kerf.IndexError, kerf.InternalError):
        assert issubclass(error, kerf.KerfError)


def _compiled_graph(function, *inputs):
    """The compiled graph itself, below AOTAutograd's wrappers."""
    from kerf.backend import compile_graph
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    with FakeTensorMode() as mode:
        gm = make_fx(function)(*(mode.from_tensor(i) for i in inputs))
    return compile_graph(gm)


def test_fake_tensor_at_run_time():
    from torch._subclasses import FakeTensorMode

    x = torch.ones(4)
    compiled = _compiled_graph(lambda x: (x + 1,), x)
    fake = FakeTensorMode().from_tensor(x)
    with pytest.raises(kerf.UserError, match="argument 0 is a FakeTensor"):
        compiled([fake])


def test_freed_memory_at_run_time():
    x = torch.ones(4)
    compiled = _compiled_graph(lambda x: (x + 1,), x)
    gone = torch.ones(4)
    gone.untyped_storage().resize_(0)
    with pytest.raises(kerf.UserError, match="no memory"):
        compiled([gone])


def test_wrong_arguments_at_run_time():
    x = torch.ones(4)
    compiled = _compiled_graph(lambda x: (x + 1,), x)
    with pytest.raises(kerf.UserError, match="takes 1 arguments, 2 given"):
        compiled([x, x])
    with pytest.raises(kerf.UserError, match="must be a tensor"):
        compiled(["x"])
    with pytest.raises(kerf.UserError, match="dtype float64"):
        compiled([x.double()])
    with pytest.raises(kerf.UserError, match="shape"):
        compiled([torch.ones(5)])
    with pytest.raises(kerf.UserError, match="2 dimensions"):
        compiled([torch.ones(4, 1)])
    with pytest.raises(kerf.UserError, match=r"strides \[2\]"):
        compiled([torch.ones(8)[::2]])
    with pytest.raises(kerf.UserError, match="is on meta"):
        compiled([torch.ones(4, device="meta")])
    with pytest.raises(kerf.UserError, match="layout torch.sparse_coo"):
        compiled([x.to_sparse()])
    (result,) = compiled([x])
    assert torch.equal(result, x + 1)


def test_size_out_of_the_compiled_range():
    builder = _core.GraphBuilder()
    builder.add_size("n", 2, 10, 0, 0)
    shape = (_core.Size("n"),)
    given = builder.input(0, ("float32", shape, (1,)))
    (result,) = builder.call("aten.exp.default", [given], [], [("float32", shape, (1,))], "")
    builder.output_tensor(result)
    options = _core.CompileOptions()
    compiled = _core.compile(builder, options, "g", [_core.ArgumentKind.tensor], [], [(False, 0, False)], [])
    for size in (1, 11):
        with pytest.raises(
            kerf.UserError, match=f"size n is {size}, but this function was compiled for 2 <= n"
        ):
            compiled([torch.ones(size)])
    assert compiled([torch.zeros(10)])[0].tolist() == [1.0] * 10


def test_guards_cover_other_sizes_and_dtypes():
    """torch.compile compiles anew for what the guards do not cover: nothing to be told."""
    compiled = torch.compile(lambda x: torch.exp(x).sum(-1), backend="kerf")
    for x in (
        torch.randn(4, 3),
        torch.randn(5, 7),
        torch.randn(3, 4).t(),
        torch.randn(2, 2, dtype=torch.float64),
    ):
        torch.testing.assert_close(compiled(x), torch.exp(x).sum(-1))


def test_arguments_are_taken():
    arguments = [torch.ones(4)]
    _compiled_graph(lambda x: (x + 1,), *arguments)(arguments)
    assert arguments == []
