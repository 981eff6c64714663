"""The numeric judgement of Kerf's tests: errors against a float64 referee, measured by eager's own.

Per tensor, the largest error against the referee may be four times eager's plus 8 ulp of the tensor's
maximum. Eager's error is the largest over its runs, and at least the tensor's maximum times the 90th
percentile of the relative errors of eager over all tensors: one tensor may be lucky. A tensor that is
zero in truth (the gradient of a key bias) is noise in every implementation: its maximum counts as at
least 1e-3 of the median of all maxima.

What is not finite must be the same as in eager, dtype and shape too; integers must be equal.
"""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

import torch

Tensors = Mapping[str, torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The judgement of one tensor; `reason` is empty when it passed."""

    name: str
    error: float
    allowed: float
    reason: str = ""


def judge(
    candidate: Tensors, eager_runs: Sequence[Tensors], referee: Tensors, *, signed_zeros: bool = False
) -> list[Verdict]:
    """Judges every tensor of `candidate`.

    Args:
        candidate: name -> tensor of any shape and dtype.
        eager_runs: the same of one or more runs of eager; the first says what is not finite.
        referee: the same computed in float64.
        signed_zeros: zeros must have eager's signs.
    """
    eager = eager_runs[0]
    assert candidate.keys() == eager.keys() == referee.keys(), "different tensors are compared"
    floating = [name for name in eager if eager[name].is_floating_point() and eager[name].numel()]
    maxima = {name: _maximum(referee[name]) for name in floating}
    floor = 1e-3 * statistics.median(maxima.values()) if floating else 0.0
    errors = {name: max(_error(run[name], referee[name]) for run in eager_runs) for name in floating}
    relative = _percentile([errors[n] / maxima[n] for n in floating if maxima[n] >= floor > 0], 0.9)

    def verdict(name: str) -> Verdict:
        reason = _difference(candidate[name], eager[name], signed_zeros)
        if reason or name not in errors:
            return Verdict(name, float("nan") if reason else 0.0, 0.0, reason)
        scale = max(maxima[name], floor)
        ulp = torch.finfo(candidate[name].dtype).eps * scale
        allowed = 4 * max(errors[name], relative * scale) + 8 * ulp
        error = _error(candidate[name], referee[name])
        return Verdict(
            name, error, allowed, "" if error <= allowed else f"error {error:.3g}, allowed {allowed:.3g}"
        )

    return [verdict(name) for name in eager]


def assert_close(
    candidate: Tensors, eager_runs: Sequence[Tensors], referee: Tensors, *, signed_zeros: bool = False
) -> None:
    """Fails with the names and figures of all tensors that `judge` does not pass."""
    verdicts = judge(candidate, eager_runs, referee, signed_zeros=signed_zeros)
    failed = [f"{v.name}: {v.reason}" for v in verdicts if v.reason]
    assert not failed, f"{len(failed)} of {len(verdicts)} tensors differ\n" + "\n".join(failed)


def _difference(candidate: torch.Tensor, eager: torch.Tensor, signed_zeros: bool) -> str:
    """What differs that no tolerance forgives; empty if nothing does."""
    if candidate.dtype != eager.dtype or candidate.shape != eager.shape:
        return f"{candidate.dtype}{list(candidate.shape)} for {eager.dtype}{list(eager.shape)}"
    if not eager.is_floating_point() and not eager.is_complex():
        wrong = int((candidate != eager).sum())
        return f"{wrong} of {eager.numel()} values differ" if wrong else ""
    lost = ~torch.isfinite(eager)
    if not torch.equal(lost, ~torch.isfinite(candidate)) or not torch.equal(
        torch.nan_to_num(candidate[lost]), torch.nan_to_num(eager[lost])
    ):
        return "NaN or infinity at other places than in eager"
    if signed_zeros:
        zeros = (eager == 0) & (candidate == 0)
        if not torch.equal(torch.signbit(candidate[zeros]), torch.signbit(eager[zeros])):
            return "zeros of another sign than in eager"
    return ""


def _error(tensor: torch.Tensor, referee: torch.Tensor) -> float:
    """The largest error where both are finite."""
    difference = (tensor.double() - referee.double()).abs()
    return _maximum(difference)


def _maximum(tensor: torch.Tensor) -> float:
    finite = tensor.double().abs()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0


def _percentile(values: list[float], fraction: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))] if ordered else 0.0
