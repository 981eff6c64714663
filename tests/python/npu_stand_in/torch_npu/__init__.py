"""Stands for torch_npu, the card and its driver, in the Python of the npu-check environment.

The device "npu" is the CPU. triton-ascend compiles as it does for a card: its own front end, then bishengir
up to planned memory with its own refusals. Instead of the closed last stage, the linalg is compiled for the
host, and launches run that. KERF_NPU_CHECK_DIR and KERF_STAND_IN_WORKERS say where the parts are.
"""

import os
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

sys.path.append(os.environ["KERF_STAND_IN_WORKERS"])


class _CpuForNpu(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map(
            lambda x: "cpu" if x == "npu" else x, (args, kwargs or {}), is_leaf=_is_leaf
        )
        return function(*args, **kwargs)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (str, torch.Tensor))


class Event:
    def __init__(self, enable_timing: bool = False) -> None:
        self._at = 0.0

    def record(self) -> None:
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, later: "Event") -> float:
        return (later._at - self._at) * 1e3


class Driver:
    """What triton asks of the driver of a back end."""

    def __init__(self) -> None:
        self.utils = self
        self.launcher_cls = Launcher

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("npu", "Ascend910B3", 0)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 1, "num_aicore": 20, "num_vectorcore": 40}

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        import level2b

        request = _request() | {"kernel": {"name": name.split()[0]}}
        function = level2b.HostKernel(level2b.llvm_text(binary.decode(), request), request)
        return self, function, 0, 0  # a module that is None would be loaded at every launch


class Launcher:
    """Runs a kernel as the card's launcher is called."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._constants = [source.fn.arg_names.index(name) for name in source.constants]
        self._parameters = [i for i in range(len(source.fn.arg_names)) if i not in source.fn.constexprs]

    def __call__(self, x: int, y: int, z: int, stream: int, function: Any, *rest: Any) -> None:
        arguments = rest[4:]
        passed = [a for i, a in zip(self._parameters, arguments, strict=True) if i not in self._constants]
        tensors = [a for a in passed if isinstance(a, torch.Tensor)]
        run = types.SimpleNamespace(
            buffers=[_memory(i, tensor) for i, tensor in enumerate(tensors)],
            sizes=[a for a in passed if not isinstance(a, torch.Tensor)],
            programs=x * y * z,
        )
        if fault := function.run(run):
            raise RuntimeError(f"aicore exception: {fault}")


def _memory(position: int, tensor: torch.Tensor) -> types.SimpleNamespace:
    begin = tensor.data_ptr()
    data = types.SimpleNamespace(size=tensor.numel())
    return types.SimpleNamespace(
        name=f"argument {position}", data=data, begin=begin, end=begin + tensor.nbytes
    )


def _request() -> dict[str, str]:
    home = Path(os.environ["KERF_NPU_CHECK_DIR"])
    return {
        "compilers": str(home / "bishengir/ascendnpuir/bin"),
        "translate": str(home / "bin/mlir-translate"),
        "shim": str(home / "shim.so"),
    }


def _plan_only(linalg: str, metadata: dict[str, Any], options: Any) -> bytes:
    """bishengir's refusals; then the text itself, for `load_binary`."""
    import level3

    _compiler()["_parse_linalg_metadata"](linalg, metadata)
    source = Path(os.environ["TRITON_CACHE_DIR"]) / f"{metadata['hash']}.mlir"
    source.write_text(linalg)
    target = "Ascend950PR_9589" if options.compile_on_910_95 else "Ascend910B3"
    command = level3.compile_command(_request()["compilers"], source, target)
    subprocess.run([*command, "-o", source.with_suffix(".o")], capture_output=True, check=True)
    return linalg.encode()


def _compiler() -> dict[str, Any]:
    """The names of the back end's module, which triton loads by its path and not by its name."""
    from triton.backends import backends

    return backends["ascend"].compiler.add_stages.__globals__


def _install() -> None:
    from triton.runtime import driver

    driver.set_active(Driver())
    _compiler()["linalg_to_bin_enable_npu_compile_A2_A3"] = _plan_only
    _compiler()["linalg_to_bin_enable_npu_compile_910_95"] = _plan_only
    torch.npu = types.SimpleNamespace(
        Event=Event,
        get_device_name=lambda: "a stand-in on the CPU",
        is_available=lambda: "KERF_STAND_IN_NO_CARD" not in os.environ,
        synchronize=lambda: None,
    )
    _CpuForNpu().__enter__()


_install()
