"""Options of a compile: defaults in `kerf.config`, overridden by `torch.compile(options=...)`."""

import dataclasses
import difflib
import os
from typing import Any

from kerf.errors import UserError

# torch's own names, so that a program may change its backend only; on the CPU they all mean the same.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

PARTITIONERS = ("kerf", "default", "min_cut")


@dataclasses.dataclass
class Options:
    """What a compile may be told.

    Attributes:
        fallback_random: random values and generator state equal eager's; random operators are not compiled.
        cache: keep traces, plans and kernels on disk, in KERF_CACHE_DIR or the user's cache folder. The
            variable KERF_CACHE=0 turns it off whatever this says.
        opt_level: 0 or 2, code generation of LLVM.
        partition: who cuts a joint graph into forward and backward: "kerf", or torch's "default" (keeps what
            eager keeps) or "min_cut".
        dump: where each compiled graph gets a folder with the text of every stage; None writes nothing.
            Default: the variable KERF_DUMP.
    """

    fallback_random: bool = False
    cache: bool = True
    opt_level: int = 2
    partition: str = "kerf"
    dump: str | None = dataclasses.field(default_factory=lambda: os.environ.get("KERF_DUMP") or None)


config = Options()

_TYPES = {
    "fallback_random": bool,
    "cache": bool,
    "opt_level": int,
    "partition": str,
    "dump": (str, type(None)),
}


def _check(name: str, value: Any) -> None:
    expected = _TYPES[name]
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        wanted = "str or None" if isinstance(expected, tuple) else expected.__name__
        raise UserError(f"option {name} must be {wanted}, not {value!r}")
    if name == "opt_level" and value not in (0, 2):
        raise UserError(f"option opt_level must be 0 or 2, not {value}")
    if name == "partition" and value not in PARTITIONERS:
        raise UserError(f"option partition must be one of {', '.join(PARTITIONERS)}, not {value!r}")


def resolve(options: dict[str, Any] | None, mode: str | None) -> Options:
    """The options of one compile.

    Raises:
        UserError: an unknown option or mode, or a value of the wrong type; the message lists what is valid.
    """
    if mode is not None and mode not in MODES:
        raise UserError(f"unknown mode {mode!r}; valid modes: {', '.join(MODES)}")
    resolved = dataclasses.replace(config)
    for name, value in (options or {}).items():
        if name not in _TYPES:
            close = difflib.get_close_matches(name, _TYPES, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise UserError(f"unknown option {name!r}{hint}; valid options: {', '.join(_TYPES)}")
        setattr(resolved, name, value)
    for name in _TYPES:
        _check(name, getattr(resolved, name))
    return resolved
