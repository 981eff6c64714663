"""Lets a Python of the npu-check environment find what tools/npu_hardware.py needs besides (typer, rich)."""

import os
import sys

sys.path.append(os.environ["KERF_STAND_IN_PACKAGES"])  # last: torch and numpy stay the environment's own
