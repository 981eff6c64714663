"""Memory that is kept between calls: who holds it, when it is free, and what never sees it written to."""

import copy
import gc
import pickle
import threading

import kerf
import pytest
import torch
from kerf import _core
from torch.multiprocessing.reductions import StorageWeakRef

N = 1024  # rows and columns: 4 MiB in float32


@pytest.fixture(autouse=True)
def nothing_kept():
    torch.compiler.reset()
    gc.collect()
    kerf.reset()


def used() -> int:
    gc.collect()
    return _core.kept_memory()[1]


@pytest.fixture
def double():
    return torch.compile(lambda x: x * 2, backend="kerf")


def test_the_next_call_gets_the_memory_that_the_last_one_left(double):
    x = torch.randn(N, N)
    before = used()
    y = double(x)
    address, in_use = y.data_ptr(), used() - before
    assert in_use >= 4 * N * N
    del y
    assert used() == before
    assert double(x).data_ptr() == address


@pytest.mark.parametrize(
    "part",
    [
        lambda y: y[10:20],
        lambda y: y.detach(),
        lambda y: y.numpy(),
        lambda y: y.untyped_storage(),
        lambda y: torch.utils.dlpack.from_dlpack(y),
        lambda y: memoryview(y.numpy()),
    ],
    ids=["view", "detach", "numpy", "storage", "dlpack", "memoryview"],
)
def test_whoever_shares_a_result_keeps_it(double, part):
    x = torch.randn(N, N)
    y = double(x)
    address = y.data_ptr()
    held = part(y)
    del y
    others = [double(torch.randn(N, N)) for _ in range(3)]
    assert address not in [other.data_ptr() for other in others]
    if isinstance(held, torch.Tensor):
        assert torch.equal(held, part(x * 2))
    del held
    assert address in [double(x).data_ptr(), *[double(x).data_ptr() for _ in range(3)]]


def test_autograd_keeps_what_it_saved(double):
    w = torch.randn(N, N, requires_grad=True)
    x = torch.randn(N, N)
    out = (torch.compile(lambda x: x.sin(), backend="kerf")(x) * w).sum()  # `w` saves the result
    for _ in range(3):
        double(torch.randn(N, N))
    out.backward()
    torch.testing.assert_close(w.grad, x.sin(), rtol=0, atol=1e-6)


def test_results_in_shared_memory_are_another_process_s(double):
    x = torch.randn(N, N)
    y = double(x)
    y.share_memory_()
    assert y.is_shared()
    for _ in range(3):
        double(torch.randn(N, N))
    assert torch.equal(y, x * 2)
    assert used() == 0


def test_gradients_stay_while_the_next_step_runs():
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512))
    compiled = torch.compile(model, backend="kerf")
    inputs = [torch.randn(256, 512) for _ in range(4)]
    sums = [torch.zeros_like(p) for p in model.parameters()]
    kept = []
    for x in inputs:
        model.zero_grad()
        compiled(x).square().mean().backward()
        kept.append([p.grad for p in model.parameters()])
        for total, p in zip(sums, model.parameters(), strict=True):
            total += p.grad
    for i, total in enumerate(sums):
        assert torch.equal(total, sum((grads[i] for grads in kept), torch.zeros_like(total)))
    model.zero_grad()
    for x in inputs:
        compiled(x).square().mean().backward()  # added up in place
    for total, p in zip(sums, model.parameters(), strict=True):
        torch.testing.assert_close(p.grad, total, rtol=1e-5, atol=1e-7)


def test_copies_and_pickles(double):
    x = torch.randn(N, N)
    y = double(x)
    assert torch.equal(copy.deepcopy(y), x * 2)
    assert torch.equal(pickle.loads(pickle.dumps(y)), x * 2)


def test_in_place_changes_and_strides(double):
    x = torch.randn(N, N).t()
    y = double(x)
    assert (y.stride(), y.storage_offset(), y._version) == ((x * 2).stride(), 0, 0)
    y.add_(1)
    assert y._version == 1
    assert torch.equal(y, x * 2 + 1)
    assert torch.equal(y.resize_(10, 10), (x * 2 + 1).resize_(10, 10))


def test_a_result_cannot_grow(double):
    x = torch.randn(N, N)
    with pytest.raises(RuntimeError, match="not resizable"):
        double(x).resize_(2 * N, N)
    assert torch.equal(double(x).clone().resize_(2 * N, N)[:N], x * 2)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int16, torch.float16, torch.bfloat16, torch.float64]
)
def test_dtypes(dtype):
    x = torch.randint(0, 2, (N, N)).to(dtype)
    y = torch.compile(lambda x: x.flip(0), backend="kerf")(x)
    assert y.dtype == dtype
    assert torch.equal(y, x.flip(0))


def test_threads_that_call_and_drop(double):
    errors = []

    def work(seed: int) -> None:
        x = torch.full((N, N), float(seed))
        for _ in range(20):
            if not torch.equal(double(x), x * 2):
                errors.append(seed)

    double(torch.zeros(N, N))
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.parametrize("rows, is_kept", [(N // 4, False), (N, True)], ids=["a part", "much"])
def test_results_after_the_last_library_call_are_torchs_own_if_they_are_small(rows, is_kept):
    def step(x, w):
        e = x.sin()
        product = e @ w
        return e, product, product[:rows] * 3

    x, w = torch.randn(N, N), torch.randn(N, N)
    before = used()
    e, product, late = torch.compile(step, backend="kerf")(x, w)
    whole = 4 * N * N
    assert (used() - before >= 2 * whole + 4 * late.numel()) == is_kept
    assert used() - before >= 2 * whole
    assert torch.equal(late, product[:rows] * 3)
    assert late.untyped_storage().resizable() != is_kept


def test_a_call_that_fails_leaves_nothing_in_use():
    table = torch.randn(N, N)

    def lookup(table, index):
        big = table.sin()
        return torch.nn.functional.embedding(index, big) * 2, big

    compiled = torch.compile(lookup, backend="kerf")
    compiled(table, torch.arange(N))
    before = used()
    with pytest.raises(IndexError):
        compiled(table, torch.full((N,), N))
    assert used() == before


def test_an_incoming_gradient_ends_with_its_last_use():
    gradient, ended = [], []

    @torch.library.custom_op("kerf_test::watched_backward", mutates_args=())
    def watched_backward(g: torch.Tensor) -> torch.Tensor:
        ended.append(gradient[0].expired())
        return g.clone()

    @torch.library.custom_op("kerf_test::watched", mutates_args=())
    def watched(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    watched_backward.register_fake(torch.empty_like)
    watched.register_fake(torch.empty_like)
    watched.register_autograd(lambda ctx, g: torch.ops.kerf_test.watched_backward(g))

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            made = torch.ones(N, N)
            gradient.append(StorageWeakRef(made.untyped_storage()))
            return made

    x = torch.randn(N, N, requires_grad=True)
    compiled = torch.compile(lambda x: torch.ops.kerf_test.watched(x) * 2, backend="kerf")
    Sum.apply(compiled(x)).backward()
    assert torch.equal(x.grad, torch.full((N, N), 2.0))
    assert ended == [True]


def test_reset_gives_memory_back(double):
    double(torch.randn(N, N))
    assert _core.kept_memory()[0] > 0
    kerf.reset()
    assert _core.kept_memory() == (0, 0)


def test_temporaries_end_with_their_last_use():
    """Three long matrices one after another, of which two are alive at once."""

    def chain(x, w):
        for _ in range(6):
            x = torch.relu(x @ w)
        return x.sum()

    compiled = torch.compile(chain, backend="kerf")
    with torch.no_grad():
        compiled(torch.randn(N, N), torch.randn(N, N) / 32)
    kept, in_use = _core.kept_memory()
    assert in_use == 0
    assert kept <= 3 * 4 * N * N
