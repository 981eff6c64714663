"""Imports timm without torchvision, whose builds must match torch's exactly.

timm takes from torchvision the transforms of its data pipeline, data sets, and one layer that no model here
has. While timm is imported, stand-in modules answer for these names; afterwards they are gone, so that nobody
else takes them for torchvision.
"""

import contextlib
import enum
import importlib.util
import sys
import types
from collections.abc import Iterator

import torch


class _InterpolationMode(enum.Enum):
    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class _StandIn(types.ModuleType):
    """A package in which every name is an empty class of its own."""

    InterpolationMode = _InterpolationMode
    __path__: list[str] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (torch.nn.Module,), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


_NAMES = (
    "torchvision",
    "torchvision.datasets",
    "torchvision.models",
    "torchvision.models.feature_extraction",
    "torchvision.ops",
    "torchvision.ops.misc",
    "torchvision.transforms",
    "torchvision.transforms.functional",
)


@contextlib.contextmanager
def _torchvision() -> Iterator[None]:
    if importlib.util.find_spec("torchvision") is not None:
        yield
        return
    for name in _NAMES:
        sys.modules[name] = _StandIn(name)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])
    try:
        yield
    finally:
        for name in _NAMES:
            del sys.modules[name]


with _torchvision():
    import timm

__all__ = ["timm"]
