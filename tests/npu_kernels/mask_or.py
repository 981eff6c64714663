"""mask_or: breaks the rule on masks (`|`), so that stores rewrite memory past the end. Kernel for npu:910B3."""

import triton
import triton.language as tl


@triton.jit
def mask_or(x_ptr, out_ptr, X0: tl.constexpr = 2000, BX0: tl.constexpr = 1024):
    for tile in range(tl.program_id(0), tl.cdiv(X0, BX0), tl.num_programs(0)):
        x0 = tile * BX0 + tl.arange(0, BX0)
        m = (x0 < 5) | (x0 < X0)
        tl.store(out_ptr + x0, tl.load(x_ptr + x0, mask=m, other=0.0) + 1.0, mask=m)


KERNEL = {
    "name": "mask_or",
    "target": "npu:910B3",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 2000, "mode": "in"},
        {"name": "out", "dtype": "f32", "elements": 2000, "mode": "out"}
    ],
    "sizes": {},
    "extents": {"X0": 2000},
    "cut": {"X0": 2000},
    "blocks": [{"BX0": 1024}],
    "grid": [["X0", "BX0"]],
    "cores": 40,
    "tolerance": 1e-06
}
