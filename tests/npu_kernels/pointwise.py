"""pointwise: kernel for npu:910B3.

  model.py:3  exp(x + y)
axes  x0 < 1000003 kept
"""

import triton
import triton.language as tl


@triton.jit
def pointwise(x_ptr, y_ptr, out_ptr, X0: tl.constexpr = 1000003, BX0: tl.constexpr = 6144):
    for tile in range(tl.program_id(0), tl.cdiv(X0, BX0), tl.num_programs(0)):
        x0 = tile * BX0 + tl.arange(0, BX0)
        m = x0 < X0
        x = tl.load(x_ptr + x0, mask=m, other=0.0)
        y = tl.load(y_ptr + x0, mask=m, other=0.0)
        tl.store(out_ptr + x0, tl.exp(x + y), mask=m)


KERNEL = {
    "name": "pointwise",
    "target": "npu:910B3",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 1000003, "mode": "in"},
        {"name": "y", "dtype": "f32", "elements": 1000003, "mode": "in"},
        {"name": "out", "dtype": "f32", "elements": 1000003, "mode": "out"}
    ],
    "sizes": {},
    "extents": {"X0": 1000003},
    "cut": {"X0": 12301},
    "blocks": [{"BX0": 6144}, {"BX0": 3072}],
    "grid": [["X0", "BX0"]],
    "cores": 40,
    "tolerance": 1e-06
}
