"""flux: kernel for npu:910B3.

  flux.py:88  (qkv + bias).permute(1, 2, 0, 3) * rope
axes  q < 3, h < 24, t < 512, d < 128 kept
"""

import triton
import triton.language as tl


@triton.jit
def flux(
    x_ptr,
    bias_ptr,
    rope_ptr,
    out_ptr,
    Q: tl.constexpr = 3,
    H: tl.constexpr = 24,
    T: tl.constexpr = 512,
    D: tl.constexpr = 128,
    BH: tl.constexpr = 4,
    BT: tl.constexpr = 16,
    BD: tl.constexpr = 128,
):
    tiles = Q * tl.cdiv(H, BH) * tl.cdiv(T, BT)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        q = tile // (tl.cdiv(H, BH) * tl.cdiv(T, BT))
        h = (tile // tl.cdiv(T, BT) % tl.cdiv(H, BH) * BH + tl.arange(0, BH))[:, None, None]
        t = (tile % tl.cdiv(T, BT) * BT + tl.arange(0, BT))[None, :, None]
        d = tl.arange(0, BD)[None, None, :]
        x = tl.load(x_ptr + (3072 * q + 128 * h + 9216 * t + d))
        bias = tl.load(bias_ptr + (3072 * q + 128 * h + d))
        rope = tl.load(rope_ptr + (128 * t + d))
        tl.store(out_ptr + (1572864 * q + 65536 * h + 128 * t + d), (x + bias) * rope)


KERNEL = {
    "name": "flux",
    "target": "npu:910B3",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 4718592, "mode": "in"},
        {"name": "bias", "dtype": "f32", "elements": 9216, "mode": "in"},
        {"name": "rope", "dtype": "f32", "elements": 65536, "mode": "in"},
        {"name": "out", "dtype": "f32", "elements": 4718592, "mode": "out"}
    ],
    "sizes": {},
    "extents": {"Q": 3, "H": 24, "T": 512, "D": 128},
    "cut": {"Q": 3, "H": 12, "T": 48, "D": 128},
    "blocks": [{"BH": 4, "BT": 16, "BD": 128}, {"BH": 2, "BT": 16, "BD": 128}],
    "grid": [["Q", 1], ["H", "BH"], ["T", "BT"]],
    "cores": 40,
    "tolerance": 1e-06
}
