"""How own compile time grows with the graph: seconds of each stage for two lengths, and their ratio.

    benchmarks/scaling.py --nodes 1000 --nodes 10000

Two chains, of one block again and again: `mixed` is a training step of linear, norm, activation and residual
(forward and backward in one graph), `pointwise` has no library call. Graphs are made once and compiled
`repeats` times; the fastest counts. Twelve times the time for ten times the nodes is the bar.
"""

from typing import Annotated, Any

import kerf
import torch
import torch.nn.functional as F
import typer
from kerf.backend import compile_graph
from kerf.options import resolve
from rich.console import Console
from rich.table import Table
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

STAGES = ("import", "graph", "lower", "schedule", "codegen", "build", "total")
BAR = 12.0


def mixed(blocks: int) -> fx.GraphModule:
    """The gradients of all parameters, which are another set in each block."""
    width = 64
    x = torch.randn(32, width)
    parameters = [
        torch.randn(size) for _ in range(blocks) for size in ((width, width), (width,), (width,), (width,))
    ]

    def step(x: torch.Tensor, *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = [p.requires_grad_() for p in parameters]
        y = x
        for i in range(0, len(leaves), 4):
            weight, bias, scale, shift = leaves[i : i + 4]
            y = y + F.gelu(F.layer_norm(F.linear(y, weight, bias), (width,), scale, shift))
        return torch.autograd.grad(y.square().mean(), leaves)

    return make_fx(step, tracing_mode="fake")(x, *parameters)


def pointwise(blocks: int) -> fx.GraphModule:
    """Rows are scaled by their largest element, and pass through what pays to fuse and what does not."""
    x, y = torch.randn(64, 256), torch.randn(64, 256)

    def chain(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor]:
        for _ in range(blocks):
            x = (x / x.abs().amax(1, keepdim=True)).tanh() + y
            y = (y * x).sigmoid() - x.mean(0)
        return (x + y,)

    return make_fx(chain, tracing_mode="fake")(x, y)


CHAINS = {"mixed": mixed, "pointwise": pointwise}


def graph_of(chain: str, nodes: int) -> fx.GraphModule:
    """About so many nodes: what few blocks have says how many it takes."""
    few = 4
    small, smaller = (len(CHAINS[chain](n).graph.nodes) for n in (2 * few, few))
    per_block = (small - smaller) // few
    return CHAINS[chain](max(1, nodes // per_block))


def seconds_of(gm: fx.GraphModule, repeats: int) -> dict[str, float]:
    """The seconds of each stage in the fastest compile."""
    runs = []
    for _ in range(repeats):
        compile_graph(gm, options=resolve({"cache": False}, None))
        runs.append(kerf.compilations()[-1].seconds)
    return min(runs, key=lambda seconds: seconds["total"])


def main(
    chain: Annotated[list[str] | None, typer.Option(help="mixed, pointwise; both by default")] = None,
    nodes: Annotated[list[int] | None, typer.Option(help="1000 and 10000 by default")] = None,
    repeats: int = 2,
) -> None:
    sizes = sorted(nodes or (1000, 10000))
    compile_graph(graph_of("mixed", 20))  # what only the first compile of a process does
    for name in chain or CHAINS:
        graphs = {size: graph_of(name, size) for size in sizes}
        measured = {size: seconds_of(gm, repeats) for size, gm in graphs.items()}
        table = Table(title=f"{name}: seconds of own compile")
        for column in ("nodes", *STAGES):
            table.add_column(column, justify="right")
        for size, seconds in measured.items():
            table.add_row(str(len(graphs[size].graph.nodes)), *(f"{seconds[stage]:.3f}" for stage in STAGES))
        first, last = measured[sizes[0]], measured[sizes[-1]]
        ratios: list[Any] = [last[stage] / max(first[stage], 1e-9) for stage in STAGES]
        table.add_row("ratio", *(f"{ratio:.1f}" for ratio in ratios))
        Console().print(table)
        growth = len(graphs[sizes[-1]].graph.nodes) / len(graphs[sizes[0]].graph.nodes)
        print(
            f"{name}: {ratios[-1]:.1f} times the time for {growth:.1f} times the nodes (bar {BAR:.0f} for 10)"
        )


if __name__ == "__main__":
    typer.run(main)
