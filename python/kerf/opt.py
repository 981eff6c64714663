"""kerf_opt for whoever installed the package: passes by name over the text of Kerf's IRs.

python -m kerf.opt --passes=lower,fuse_kernels graph.txt     (standard input without a file)
python -m kerf.opt --list
"""

import argparse
import sys
from collections.abc import Sequence

from kerf import _core
from kerf.errors import KerfError


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 if the text or a pass is at fault, which is told on standard error."""
    parser = argparse.ArgumentParser(
        prog="kerf_opt", description="Runs passes over the text form of Kerf's IRs."
    )
    parser.add_argument("--passes", default="roundtrip", help="comma-separated names, run in order")
    parser.add_argument("--list", action="store_true", help="show the passes")
    parser.add_argument("file", nargs="?", help="input text; standard input if absent")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        for name, help_text in _core.passes():
            print(f"{name}  {help_text}")
        return 0
    try:
        if chosen.file:
            with open(chosen.file) as file:
                text = file.read()
        else:
            text = sys.stdin.read()
        sys.stdout.write(_core.run_passes(chosen.passes, text))
    except (KerfError, IndexError, OSError) as error:
        print(f"kerf_opt: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
