"""too_big: the first tile does not fit the unified buffer, the third does. Kernel for npu:910B3."""

import triton
import triton.language as tl


@triton.jit
def too_big(x_ptr, out_ptr, X0: tl.constexpr = 1000000, BX0: tl.constexpr = 65536):
    for tile in range(tl.program_id(0), tl.cdiv(X0, BX0), tl.num_programs(0)):
        x0 = tile * BX0 + tl.arange(0, BX0)
        m = x0 < X0
        x = tl.load(x_ptr + x0, mask=m, other=0.0)
        tl.store(out_ptr + x0, tl.exp(x) * x, mask=m)


KERNEL = {
    "name": "too_big",
    "target": "npu:910B3",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 1000000, "mode": "in"},
        {"name": "out", "dtype": "f32", "elements": 1000000, "mode": "out"}
    ],
    "sizes": {},
    "extents": {"X0": 1000000},
    "cut": {"X0": 140000},
    "blocks": [{"BX0": 65536}, {"BX0": 32768}, {"BX0": 4096}],
    "grid": [["X0", "BX0"]],
    "cores": 40,
    "tolerance": 1e-06
}
