"""A fresh start is what a later process does: Dynamo is reset, and nothing of the disk cache is in memory."""

import kerf
import torch


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
    if not any(c.seconds["import"] for c in compilations):
        assert all(c.cache_hit and c.seconds["load"] for c in compilations)
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
    assert state() != "warm" if how == "anew" else state() == how
    for value, expected in zip(inputs, expected_inputs, strict=True):
        torch.testing.assert_close(value.grad, expected.grad)


def normal(*shape, grad=False, seed=0, **kwargs):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, **kwargs).requires_grad_(grad)
