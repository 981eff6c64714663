"""Measures one model in one mode under several backends, in this process, side by side.

Run as a child by run.py: takes a Job as JSON, writes the answer as JSON. What a backend raises is part of the
answer, so that the others are still measured.

A timed step of training is forward, loss and backward; the optimizer, the same for all, is not timed. Rounds
run every backend once, in rotating order, so that noise of the machine falls on all of them.
"""

import copy
import dataclasses
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kerf
import numpy as np
import torch
from models import MODELS, Workload, build
from torch._dynamo.utils import compilation_time_metrics
from torch.utils import _pytree as pytree

# Who compiles later finds caches of tracing filled, so Kerf goes before the one it is compared with.
COMPILE_ORDER = ("eager", "kerf", "inductor")

WARM_UP_STEPS = 2
CHECKED_STEPS = 3
LEARNING_RATE = 1e-4


@dataclasses.dataclass(frozen=True)
class Job:
    """What a child process measures; `rounds` 0 checks the numbers only."""

    model: str
    mode: str
    backends: list[str]
    rounds: int
    threads: int
    autocast: bool = False


class Contender:
    """One backend with its own copy of the model."""

    def __init__(self, backend: str, workload: Workload, mode: str, autocast: bool = False) -> None:
        self.backend = backend
        self.mode = mode
        self.autocast = autocast
        self.model = copy.deepcopy(workload.model).train(mode == "train")
        self.inputs, self.loss = workload.inputs, workload.loss
        self.call = self.model if backend in ("eager", "referee") else compiled_by(backend, self.model)
        if backend == "referee":
            self.model.double()
            self.inputs = {k: v.double() if v.is_floating_point() else v for k, v in self.inputs.items()}
        self.answer: dict[str, Any] = {}
        self.seconds: list[float] = []

    def step(self) -> torch.Tensor:
        """Training: the loss, with gradients left in the model. Inference: all results in one vector."""
        if self.mode == "infer":
            with torch.no_grad(), self.precision():
                return _flat(self.call(**self.inputs))
        with self.precision():
            loss = self.loss(self.call, self.inputs)
        loss.backward()
        return loss.detach()

    def precision(self) -> torch.autocast:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.autocast)

    def timed_step(self) -> float:
        self.model.zero_grad()
        start = time.perf_counter()
        self.step()
        return time.perf_counter() - start

    def observe(self) -> dict[str, Any]:
        """The numbers that are judged: results, or gradients and the losses of a few steps of AdamW."""
        self.model.zero_grad()
        if self.mode == "infer":
            return {"tensors": {"results": self.step().double()}, "losses": []}
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE)
        losses, gradients = [], {}
        for _ in range(CHECKED_STEPS):
            optimizer.zero_grad()
            losses.append(self.step().item())
            gradients = gradients or self.gradients()
            optimizer.step()
        return {"tensors": gradients, "losses": losses}

    def gradients(self) -> dict[str, torch.Tensor]:
        named = self.model.named_parameters()
        return {name: p.grad.double().clone() for name, p in named if p.grad is not None}


def compiled_by(backend: str, model: torch.nn.Module) -> Callable[..., Any]:
    return torch.compile(model, backend=backend)


def _flat(results: Any) -> torch.Tensor:
    leaves = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
    return torch.cat([leaf.reshape(-1) for leaf in leaves])


# Judging


def largest_error(got: dict[str, torch.Tensor], referee: dict[str, torch.Tensor]) -> float:
    """The largest relative error of a tensor, in the 2-norm.

    A tensor that is nearly zero beside the largest (a bias before a batch norm, the bias of keys) is rounding
    only: its error counts against a thousandth of the largest.
    """
    if got.keys() != referee.keys():
        return float("inf")
    floor = 1e-3 * max(tensor.norm().item() for tensor in referee.values())
    errors = [
        (got[name] - tensor).norm().item() / max(tensor.norm().item(), floor, 1e-300)
        for name, tensor in referee.items()
    ]
    return float("inf") if any(np.isnan(errors)) else max(errors)


def judge(got: dict[str, Any], eager: dict[str, Any], referee: dict[str, Any]) -> dict[str, Any]:
    """Right: at most four times as far from float64 as eager is, plus 64 roundings of float32."""
    slack = 64 * torch.finfo(torch.float32).eps
    error, allowed = (largest_error(side["tensors"], referee["tensors"]) for side in (got, eager))
    right = error <= 4 * allowed + slack
    if referee["losses"]:
        truth = np.array(referee["losses"])
        ours, theirs = (np.abs(np.array(side["losses"]) - truth).max() for side in (got, eager))
        right = bool(right and ours <= 4 * theirs + slack * np.abs(truth).max())
    return {"right": right, "error": error, "eager_error": allowed, "losses": got["losses"]}


# Reports of the backends


def kerf_report() -> dict[str, Any]:
    records = kerf.compilations()
    externs = Counter((extern.op, extern.reason) for record in records for extern in record.externs)
    moved = sum((Counter(record.bytes) for record in records), Counter())
    outside = moved["kernels"] + moved["other_externs"]
    return {
        "graphs": len(records),
        "nodes": sum(record.nodes for record in records),
        "kernels": sum(record.kernels for record in records),
        "unique_kernels": sum(record.unique_kernels for record in records),
        "externs": sum(externs.values()),
        "extern_list": [[op, reason, count] for (op, reason), count in externs.most_common()],
        "bytes": dict(moved),
        # Bytes moved by kernels, of all that are not moved by matrix products, convolutions and attention.
        "compiled_share": moved["kernels"] / outside if outside else 1.0,
        "compile_seconds": sum(record.seconds["total"] for record in records),
    }


def inductor_report() -> dict[str, Any]:
    """Its own compile time, C++ compiler included, without tracing."""
    return {"compile_seconds": sum(compilation_time_metrics.get("compile_fx_inner", []))}


REPORTS: dict[str, Callable[[], dict[str, Any]]] = {"kerf": kerf_report, "inductor": inductor_report}


def error_of(error: BaseException) -> dict[str, Any]:
    """First line, and the last frames of the cause below Dynamo's wrapper."""
    cause = getattr(error, "inner_exception", None) or error
    frames = traceback.format_exception(type(cause), cause, cause.__traceback__)
    line = str(cause).strip().partition("\n")[0]
    return {"error": f"{type(cause).__name__}: {line}", "traceback": "".join(frames[-8:])[-4000:]}


# The run


def warm_up(backend: str) -> None:
    """Imports and first-use costs (Dynamo, LLVM, precompiled headers), which belong to no model."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    compiled_by(backend, model)(torch.randn(4, 8)).sum().backward()


def start(contender: Contender) -> None:
    """First steps: compiles, and measures the first."""
    kerf.reset()
    compilation_time_metrics.clear()
    contender.answer["first_step"] = contender.timed_step()
    contender.answer |= REPORTS.get(contender.backend, dict)()


def measure(job: Job) -> dict[str, Any]:
    """Backend -> numbers, or {"error", "traceback"}."""
    torch.set_num_threads(job.threads)
    workload = build(MODELS[job.model])
    referee = Contender("referee", workload, job.mode).observe()
    eager = Contender("eager", workload, job.mode, job.autocast).observe()
    answers, running = {}, []
    for backend in sorted(job.backends, key=COMPILE_ORDER.index):
        try:
            if backend != "eager":
                warm_up(backend)
            contender = Contender(backend, workload, job.mode, job.autocast)
            start(contender)
            # Judged from the initial state: running statistics have moved.
            contender.model.load_state_dict(workload.model.state_dict())
            contender.answer |= judge(contender.observe(), eager, referee)
            answers[backend] = contender.answer
            running.append(contender)
        except Exception as error:  # whatever it is, it is the result
            answers[backend] = error_of(error)
    del referee, eager
    time_rounds(running, job.rounds)
    return answers


def time_rounds(contenders: list[Contender], rounds: int) -> None:
    if not rounds:
        return
    for contender in contenders:
        for _ in range(WARM_UP_STEPS):
            contender.timed_step()
    for i in range(rounds):
        shift = i % len(contenders)
        for contender in contenders[shift:] + contenders[:shift]:
            contender.seconds.append(contender.timed_step())
    for contender in contenders:
        contender.answer["seconds"] = contender.seconds
        contender.answer["step"] = float(np.median(contender.seconds))
        contender.answer["cold_start"] = contender.answer["first_step"] - contender.answer["step"]


def main() -> None:
    job, answer = Job(**json.loads(sys.argv[1])), Path(sys.argv[2])
    answer.write_text(json.dumps(measure(job)))


if __name__ == "__main__":
    main()
