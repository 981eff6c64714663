"""divided_pointer: breaks the rule on pointers (a tile's `//`), so that elements are read one by one.

Kernel for npu:910B3.
"""

import triton
import triton.language as tl


@triton.jit
def divided_pointer(x_ptr, out_ptr, X0: tl.constexpr = 3000, BX0: tl.constexpr = 1024):
    for tile in range(tl.program_id(0), tl.cdiv(X0, BX0), tl.num_programs(0)):
        x0 = tile * BX0 + tl.arange(0, BX0)
        m = x0 < X0
        tl.store(out_ptr + x0, tl.load(x_ptr + x0 // 3, mask=m, other=0.0), mask=m)


KERNEL = {
    "name": "divided_pointer",
    "target": "npu:910B3",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 1000, "mode": "in"},
        {"name": "out", "dtype": "f32", "elements": 3000, "mode": "out"}
    ],
    "sizes": {},
    "extents": {"X0": 3000},
    "cut": {"X0": 3000},
    "blocks": [{"BX0": 1024}],
    "grid": [["X0", "BX0"]],
    "cores": 40,
    "tolerance": 1e-06
}
