"""What a user sees when something is wrong: the class, the text, and the path by which it comes."""

import kerf
import pytest
import torch
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


def test_another_device():
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(lambda x: x + 1, backend="kerf")(torch.ones(3, device="meta"))
    assert isinstance(caught.value.inner_exception, kerf.UserError)
    assert "meta" in str(caught.value.inner_exception)


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


def test_index_out_of_range_is_eagers_error():
    table, index = torch.randn(5, 3), torch.tensor([0, 7])
    compiled = torch.compile(lambda t, i: t[i] * 2, backend="kerf")
    with pytest.raises(IndexError, match="7"):
        compiled(table, index)
    torch.testing.assert_close(compiled(table, torch.tensor([0, 4])), table[[0, 4]] * 2, rtol=0, atol=0)


def test_error_of_a_library_call_comes_as_it_is():
    compiled = torch.compile(lambda x: torch.linalg.cholesky(x) + 1, backend="kerf")
    with pytest.raises(torch.linalg.LinAlgError):
        compiled(-torch.eye(3))


def test_one_base():
    for error in (kerf.UserError, kerf.RuntimeError, kerf.InternalError):
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
    (result,) = compiled([x])
    assert torch.equal(result, x + 1)


def test_arguments_are_taken():
    arguments = [torch.ones(4)]
    _compiled_graph(lambda x: (x + 1,), *arguments)(arguments)
    assert arguments == []
