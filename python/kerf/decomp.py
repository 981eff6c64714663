"""The decompositions that tracing applies.

Empty: composites reach the compiler whole and are lowered in C++, where the target and the neighbours are
known; what C++ has no lowering for runs as torch's own kernel, which beats its pieces run one by one.
"""

from collections.abc import Callable
from typing import Any

import torch


def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """The table given to AOTAutograd."""
    return {}
