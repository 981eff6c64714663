"""The command `kerf`."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def kerf() -> None:
    """Kerf: a compiler for PyTorch graphs."""


@app.command()
def compile(
    model: Annotated[Path, typer.Argument(help="A Python file with `model` and `inputs`, or a .pt2.")],
    target: Annotated[str, typer.Option(help="npu:910B3, npu:910_9382, npu:950 or cuda.")],
    out: Annotated[Path, typer.Option(help="Folder for a file per kernel.")],
    training: Annotated[bool, typer.Option("--training", help="The backward pass too.")] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Sizes may change.")] = False,
    softmax_width: Annotated[int | None, typer.Option(help="Ascend: longer rows are a library call.")] = None,
) -> None:
    """Writes the kernels of a model for a target, without the device."""
    from kerf.errors import KerfError
    from kerf.offline.models import compile_file

    try:
        options = {"training": training, "dynamic": dynamic, "softmax_width": softmax_width}
        plan = compile_file(model, target=target, **options)
        plan.save(out)
    except (KerfError, OSError) as error:
        typer.echo(f"kerf compile: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(plan.report())


@app.command()
def npu_check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Kernel files, folders of them, or models as `kerf compile` has."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write everything that was found to this file.")] = None,
    levels: Annotated[str, typer.Option(help="Which of L0, L1, L2, L2b, L3.")] = "L0,L1,L2,L2b,L3",
    target: Annotated[str, typer.Option(help="Of 910B3, 910_9382, 950; else all that a kernel is for.")] = "",
    jobs: Annotated[int, typer.Option(min=0, help="Kernels at a time; 0: by the number of cores.")] = 0,
    install: Annotated[bool, typer.Option("--install", help="Make the environments (1.9 GB).")] = False,
    training: Annotated[bool, typer.Option("--training", help="Of models, the backward pass too.")] = False,
) -> None:
    """Checks Ascend kernels without a card: front end, numbers, memory plan."""
    from kerf_npu_check.cli import run

    with tempfile.TemporaryDirectory() as folder:
        raise typer.Exit(run(paths or [], json, levels, target, jobs, install, training, Path(folder)))
