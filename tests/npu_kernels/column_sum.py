"""column_sum: kernel for npu:910B3, with rows whose number is known at run time only.

  model.py:7  weight.sum(0)
axes  x0 < 1030 kept, r0 < rows folded
"""

import triton
import triton.language as tl


@triton.jit
def column_sum(
    x_ptr, out_ptr, rows, X0: tl.constexpr = 1030, BX0: tl.constexpr = 256, BR0: tl.constexpr = 16
):
    for tile in range(tl.program_id(0), tl.cdiv(X0, BX0), tl.num_programs(0)):
        x0 = (tile * BX0 + tl.arange(0, BX0))[None, :]
        total = tl.zeros((BR0, BX0), tl.float32)
        for r in range(0, rows, BR0):
            r0 = (r + tl.arange(0, BR0))[:, None]
            x = tl.load(x_ptr + (1030 * r0 + x0), mask=(r0 < rows) & (x0 < X0), other=0.0)
            total += x
        tl.store(out_ptr + x0, tl.sum(total, axis=0)[None, :], mask=x0 < X0)


KERNEL = {
    "name": "column_sum",
    "target": "npu:910B3",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 267800, "mode": "in"},
        {"name": "out", "dtype": "f32", "elements": 1030, "mode": "out"}
    ],
    "sizes": {"rows": 45},
    "extents": {"X0": 1030},
    "cut": {"X0": 530},
    "blocks": [{"BX0": 256, "BR0": 16}, {"BX0": 128, "BR0": 16}],
    "grid": [["X0", "BX0"]],
    "cores": 40,
    "tolerance": 1e-06
}
