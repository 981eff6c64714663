"""Kernels on an Ascend card: files of `Plan.save`, built by the vendor's Triton and launched by its runtime.

This has run against a stand-in on a CPU (tests/python/npu_stand_in) and never on a card: docs/npu.md. It
needs torch, torch_npu, triton-ascend and no built Kerf: tools/npu_hardware.py loads this file by itself.
"""

import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

DEVICE = "npu"
_TRITON = "triton-ascend==3.2.0"
_PYTHONS = ((3, 10), (3, 11))
# What triton-ascend's wheel of 3.2.0, made for A2 and A3, has to be told on an A5.
_A5_OPTIONS = {
    "compile_on_910_95": True,
    "enable_select_analysis": True,
    "multibuffer": False,
    "enable_auto_bind_sub_block": False,
}


class DoesNotFit(Exception):
    """The vendor's compiler has no room for any choice of blocks."""


def missing() -> list[str]:
    """What stands between this process and a card, each with what to do about it; empty if nothing does."""
    parts: tuple[Callable[[], str], ...] = (_triton_fault, _compiler_fault, _torch_npu_fault)
    return [fault for part in parts if (fault := part())]


def _triton_fault() -> str:
    install = f"pip install {_TRITON} pybind11, in an environment without another triton"
    if sys.version_info[:2] not in _PYTHONS:
        mine = ".".join(map(str, sys.version_info[:2]))
        return f"{_TRITON} has wheels for CPython up to 3.11, this needs 3.10 or 3.11, and here is {mine}"
    if importlib.util.find_spec("triton") is None:
        return f"triton is not installed: {install}"
    try:
        found = importlib.util.find_spec("triton.backends.ascend")
    except ImportError as error:
        return f"triton cannot be imported ({error}): {install}"
    return "" if found else f"the triton that is installed is not Ascend's: {install}"


def _compiler_fault() -> str:
    source = "install CANN (8.5 or newer) and source its set_env.sh"
    if not os.environ.get("ASCEND_HOME_PATH"):
        return f"ASCEND_HOME_PATH is not set: {source}"
    if shutil.which("bishengir-compile") or os.environ.get("TRITON_NPU_COMPILER_PATH"):
        return ""
    return f"bishengir-compile is not in PATH: {source}, or set TRITON_NPU_COMPILER_PATH"


def _torch_npu_fault() -> str:
    version = torch.__version__.partition("+")[0]
    if importlib.util.find_spec("torch_npu") is None:
        return f"torch_npu is not installed: pip install torch-npu=={version} (the version of torch)"
    try:
        importlib.import_module("torch_npu")
    except Exception as error:  # a library of CANN is not found, or versions do not go together
        return f"torch_npu cannot be imported ({error}): it goes with torch {version} and CANN's set_env.sh"
    return "" if torch.npu.is_available() else "torch_npu sees no card: `npu-smi info` should list one"


class Kernel:
    """A kernel file. `facts` is its KERNEL; `module` has what checks it, the same in every file."""

    def __init__(self, path: Path, folder: Any = None) -> None:
        """`folder`: what holds the file; triton reads it whenever it builds."""
        self.path, self._folder = path, folder
        self.module = _load(path)
        self.facts: dict[str, Any] = self.module.KERNEL
        self._function = getattr(self.module, self.facts["name"])
        self._options = _A5_OPTIONS if self.facts["target"] == "npu:950" else {}

    def build(self, extents: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
        """The largest blocks that the vendor's compiler takes at `extents`, and its words on larger ones.

        Raises:
            DoesNotFit: it takes none.
            Exception: as triton raises it, for any other fault.
        """
        from triton.compiler.errors import MLIRCompilationError
        from triton.runtime.jit import MockTensor

        dtypes = (self.module.DTYPES[buffer["dtype"]] for buffer in self.facts["buffers"])
        arguments = [*map(MockTensor, dtypes), *self.facts["sizes"].values()]
        refused: list[str] = []
        for blocks in self.facts["blocks"]:
            try:
                self._function.warmup(*arguments, grid=(1,), **extents, **blocks, **self._options)
            except MLIRCompilationError as error:
                if "overflow" not in str(error):
                    raise
                refused.append(f"{blocks}: {_overflow_line(str(error))}")
            else:
                return blocks, refused
        raise DoesNotFit("; ".join(refused))

    def launch(
        self, tensors: Sequence[torch.Tensor], extents: Mapping[str, int], blocks: Mapping[str, int]
    ) -> None:
        """Queues it on the current stream, for flat tensors in the order of its buffers."""
        self.module.run(self._function, self.facts, tensors, extents, {**blocks, **self._options})

    def check(self, blocks: Mapping[str, int]) -> float:
        """Runs it at cut extents; its largest error against the numbers of Kerf's interpreter.

        Raises:
            AssertionError: a wrong number, or something written where the kernel has nothing to write.
        """
        facts = self.facts | {"blocks": [{**blocks, **self._options}]}
        return self.module.check(self._function, facts, self.path.with_suffix(".npz"))


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem.lstrip("0123456789_"), path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _overflow_line(message: str) -> str:
    """The last: those before it are about attempts."""
    return [line.strip() for line in message.splitlines() if "overflow" in line][-1]


def kernels(plan: Any) -> list[Kernel]:
    """The kernels of a Plan of compile_for, ready to be built here; in the order of `plan.kernels`.

    Raises:
        UserError: the plan is for another kind of target, or this process cannot reach a card.
    """
    from kerf.errors import UserError

    if not plan.target.startswith("npu:"):
        raise UserError(f"this plan is for {plan.target}, and not for an Ascend NPU")
    if faults := missing():
        raise UserError(f"no Ascend card can be used: {'; '.join(faults)} (docs/npu.md)")
    folder = tempfile.TemporaryDirectory()
    return [Kernel(path, folder) for path in plan.save(folder.name, expected=False)]
