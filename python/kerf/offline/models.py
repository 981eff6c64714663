"""Models in files, to be compiled without the device: what `kerf compile` and `kerf npu-check` take."""

import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kerf.errors import UserError
from kerf.offline.compile import Plan, compile_for

# A kernel file has both; one without KERNEL is a broken one, and none to be run as a model.
_KERNEL = re.compile(r"^KERNEL = \{|^@triton\.jit", re.MULTILINE)


def is_model(path: Path) -> bool:
    """A graph of torch.export.save, or Python that is no kernel file."""
    if path.suffix == ".pt2":
        return True
    return path.suffix == ".py" and path.is_file() and not _KERNEL.search(path.read_text(errors="replace"))


def compile_file(path: Path, *, target: str, **options: Any) -> Plan:
    """compile_for on the `model` and `inputs` (a sequence or mapping) of a Python file, or on a saved graph.

    Raises:
        UserError: the file is not there or lacks one of them; what compile_for raises.
    """
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    if path.suffix == ".pt2":
        program = torch.export.load(path)
        if program.example_inputs is None or program.example_inputs[1]:
            raise UserError(f"{path} holds no example inputs, or some by keyword: write a Python file for it")
        model, inputs = program.module(), program.example_inputs[0]
    else:
        names = runpy.run_path(str(path))
        if missing := [name for name in ("model", "inputs") if name not in names]:
            raise UserError(f"{path} defines no {' and no '.join(missing)}")
        model, inputs = names["model"], names["inputs"]
    return compile_for(model, inputs, target=target, **options)


def save_kernels(paths: Sequence[Path], target: str, training: bool, folder: Path) -> list[Path]:
    """`paths`, with a folder of kernel files in `folder` instead of each model.

    Raises:
        UserError: a model comes to no kernels; what compile_file raises.
    """
    result = []
    for number, path in enumerate(paths):
        if is_model(path):
            plan = compile_file(path, target=target, training=training)
            if not plan.kernels:
                raise UserError(f"{path} has no kernels for {target}: it is all library calls")
            path = folder / f"{number}_{path.stem}"
            plan.save(path)
        result.append(path)
    return result
