"""Checks of Ascend kernels without a card: `kerf npu-check`. docs/npu_check.md tells what each level can see.

The modules here run in Kerf's Python. Those in workers/ run in an environment of their own (environment.py),
one process for what compiles and one for the interpreter, and answer requests that are lines of JSON.
"""
