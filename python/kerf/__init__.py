"""Kerf: torch.compile(model, backend="kerf").

torch finds an installed Kerf by its entry point, without an import; one that is only on the path registers
itself when it is imported.
"""

from importlib.metadata import entry_points
from typing import Any

from torch._dynamo import register_backend

from kerf.backend import kerf_backend
from kerf.debug import Compilation, Partition, compilations, partitions, reset, start_log
from kerf.errors import IndexError, InternalError, KerfError, RuntimeError, UserError
from kerf.options import config
from kerf.report import explain
from kerf.step_profile import Profile, profile

__version__ = "0.1.0"

__all__ = [
    "Compilation",
    "IndexError",
    "InternalError",
    "KerfError",
    "Partition",
    "Profile",
    "RuntimeError",
    "UserError",
    "compilations",
    "compile_for",
    "config",
    "explain",
    "kerf_backend",
    "partitions",
    "profile",
    "reset",
]


def __getattr__(name: str) -> Any:
    """`compile_for`, which a program that only runs models need not load."""
    if name != "compile_for":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kerf.offline.compile import compile_for

    return compile_for


if not entry_points(group="torch_dynamo_backends", name="kerf"):  # else torch registers what it loads
    register_backend(kerf_backend, name="kerf")
start_log()
