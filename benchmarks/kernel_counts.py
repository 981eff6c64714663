#!/usr/bin/env python3
"""Fused kernels of a transformer layer, forward and backward: Kerf's for a GPU beside TorchInductor's.

    benchmarks/kernel_counts.py --inductor gpu --output counts.json  on a machine with a GPU; needs no Kerf
    benchmarks/kernel_counts.py --inductor cpu --output counts.json  anywhere: of the graphs Kerf compiles
    benchmarks/kernel_counts.py counts.json                          anywhere; prints the table

A layer is the difference between a model with three and with two of them; library calls (matrix products,
convolutions, attention) do not count. Exit status 1 where Kerf launches more.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import flux_blocks
import models

LAYERS = (2, 3)
Build = Callable[
    ..., tuple[Callable[..., Any], Any]
]  # build(layers, device): what to call, its inputs or workload


def _flux(kind: str) -> Build:
    def build(layers: int, device: str = "cpu") -> tuple[Callable[..., Any], Any]:
        counts = {"double_blocks": 1, "single_blocks": 1, f"{kind}_blocks": layers}
        config = flux_blocks.FluxConfig(heads=4, text_tokens=64, image_tokens=128, **counts)
        inputs = tuple(x.to(device) for x in flux_blocks.example_inputs(config))
        return flux_blocks.FluxBlocks(config).to(device), inputs

    return build


def _model(name: str) -> Build:
    def build(layers: int, device: str = "cpu") -> tuple[Callable[..., Any], Any]:
        with torch.device(device):
            workload = models.MODELS[name](layers=layers)
        return lambda **inputs: workload.loss(workload.model, inputs), workload

    return build


CASES = {
    "flux double": _flux("double"),
    "flux single": _flux("single"),
    **{name: _model(name) for name in ("bert", "gpt2", "qwen3", "llama", "t5", "vit")},
}


def kerf_launches(build: Build, layers: int) -> int:
    from kerf import compile_for

    torch.manual_seed(0)
    function, inputs = build(layers)
    if isinstance(inputs, models.Workload):
        inputs = inputs.inputs
    plan = compile_for(function, inputs, target="cuda", training=True)
    return sum(kernel.uses for kernel in plan.kernels)


def inductor_launches(build: Build, layers: int) -> int:
    from torch._inductor.utils import run_and_get_code

    torch.manual_seed(0)
    torch._dynamo.reset()
    function, inputs = build(layers, "cuda")
    is_model = isinstance(inputs, models.Workload)
    compiled = torch.compile(inputs.model if is_model else function)

    def step() -> None:
        if is_model:
            inputs.loss(compiled, inputs.inputs).backward()
        else:
            sum(r.sum() for r in pytree.tree_leaves(compiled(*inputs))).backward()

    _, codes = run_and_get_code(step)
    return sum(len(re.findall(r"^\s+triton_\w+\.run\(", code, re.MULTILINE)) for code in codes)


class _Counted(Exception):
    pass


def inductor_nodes(build: Build, layers: int) -> int:
    """Kernels that TorchInductor's scheduler is left with after fusion; nothing is compiled."""
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._inductor import config, scheduler
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    count = 0

    def count_nodes(nodes: list[Any]) -> list[Any]:
        nonlocal count
        count += sum(isinstance(n, (scheduler.SchedulerNode, scheduler.FusedSchedulerNode)) for n in nodes)
        raise _Counted

    def inner(gm: torch.fx.GraphModule, inputs: Any, **options: Any) -> Callable[..., Any]:
        try:
            compile_fx_inner(gm, inputs, **options)
        except Exception as error:
            if not isinstance(error.__cause__ or error.__context__ or error, _Counted):
                raise
        return make_boxed_func(gm.forward)

    torch.manual_seed(0)
    torch._dynamo.reset()
    function, inputs = build(layers)
    is_model = isinstance(inputs, models.Workload)
    compiled = torch.compile(
        inputs.model if is_model else function, backend=lambda gm, x: compile_fx(gm, x, inner_compile=inner)
    )
    with config.patch(_post_fusion_custom_pass=count_nodes, force_disable_caches=True):
        if is_model:
            inputs.loss(compiled, inputs.inputs).backward()
        else:
            sum(r.sum() for r in pytree.tree_leaves(compiled(*inputs))).backward()
    return count


def per_layer(launches: Callable[..., int], name: str) -> int:
    few, more = (launches(CASES[name], layers) for layers in LAYERS)
    return more - few


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", nargs="?", type=Path, help="what --inductor wrote")
    parser.add_argument(
        "--inductor",
        choices=("cpu", "gpu"),
        help="count TorchInductor's: of the graphs for this machine's GPU, or of those for the CPU",
    )
    parser.add_argument("--output", type=Path, help="a file for the counts")
    options = parser.parse_args()
    if options.inductor:
        counts = {}
        for name in CASES:
            counts[name] = per_layer(inductor_launches if options.inductor == "gpu" else inductor_nodes, name)
            print(name, counts[name], flush=True)
        if options.output:
            options.output.write_text(json.dumps(counts, indent=1) + "\n")
        return 0
    known = json.loads(options.counts.read_text()) if options.counts else {}
    worst = 0
    print(f"{'kernels per layer':20} {'Kerf':>6} {'TorchInductor':>14}")
    for name in CASES:
        ours = per_layer(kerf_launches, name)
        print(f"{name:20} {ours:6} {known.get(name, '?'):>14}", flush=True)
        worst = max(worst, ours - known.get(name, ours))
    return int(worst > 0)


if __name__ == "__main__":
    sys.exit(main())
