# The part of a kernel file that checks the kernel, the same in all: python FILE.py runs it on the device, or
# with TRITON_INTERPRET=1 in Triton's interpreter, on cut extents, and compares with Kerf's (FILE.npz).
import math
import os
import sys

import numpy
import torch

DTYPES = {
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f64": torch.float64,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}


def make_buffer(position, buffer, fill=0x5A):
    """The data of a buffer: inputs by a formula over element and position, outputs every byte `fill`.

    Bools alternate, as copies of other bytes need not be those bytes.
    """
    dtype, count = DTYPES[buffer["dtype"]], buffer["cut_elements"]
    if buffer["mode"] == "out" and dtype == torch.bool:
        return (torch.arange(count) + fill) % 2 == 0
    if buffer["mode"] == "out":
        return torch.full((count * dtype.itemsize,), fill, dtype=torch.uint8).view(dtype)
    mask = numpy.uint64(0xFFFFFFFF)
    element = numpy.arange(1, count + 1, dtype=numpy.uint64)
    h = (element * numpy.uint64(2654435761) + numpy.uint64(position * 40503)) & mask
    h = ((h >> numpy.uint64(15)) ^ h) * numpy.uint64(2246822519) & mask
    h = (h >> numpy.uint64(13)) ^ h
    if dtype.is_floating_point:
        return torch.from_numpy(h.astype(numpy.float64) / 2**32 * 4 - 2).to(dtype)
    if dtype == torch.bool:
        return torch.from_numpy((h >> numpy.uint64(5)) & numpy.uint64(1) == 1)
    return torch.from_numpy((h % numpy.uint64(buffer.get("below", 7))).astype(numpy.int64)).to(dtype)


def run(kernel, info, buffers, extents, blocks):
    """Launches the kernel over the tiles of these extents."""
    named = {**info["sizes"], **extents, **blocks}

    def size(x):
        """Of a number, a name, or an expression over sizes (eval takes longer than a launch)."""
        return x if isinstance(x, int) else named[x] if x in named else eval(x, {}, named)

    tiles = math.prod(-(-size(extent) // size(block)) for extent, block in info["grid"])
    programs = min(tiles, info.get("cores", tiles))
    if programs:
        kernel[(programs,)](*buffers, *info["sizes"].values(), **extents, **blocks)


def difference(got, want, tolerance, bound):
    """The largest difference as a part of the largest expected value, and whether all are right.

    An element may be off by the tolerance, as such a part, or by its own bound: how far rounding may lead.
    """
    got, want = got.astype(numpy.float64), want.astype(numpy.float64)
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    if same.all():
        return 0.0, True
    finite = numpy.isfinite(want)
    scale = numpy.abs(want[finite]).max(initial=0.0) or 1.0
    error = numpy.abs(got - want, where=~same, out=numpy.zeros_like(want))
    return float(error.max()) / scale, bool((error <= numpy.maximum(tolerance * scale, bound)).all())


def check(kernel, info, path):
    """The largest error of all outputs; raises AssertionError for a wrong number or a stray write."""
    device = info["target"].partition(":")[0]  # torch loads torch_npu by itself
    if os.environ.get("TRITON_INTERPRET") == "1":
        device = "cpu"
    before = [make_buffer(i, b) for i, b in enumerate(info["buffers"])]
    buffers = [tensor.to(device, copy=True) for tensor in before]
    run(kernel, info, buffers, info["cut"], info["blocks"][0])
    worst, expected = 0.0, numpy.load(path)
    for buffer, old, new in zip(info["buffers"], before, buffers, strict=True):
        if buffer["mode"] == "in":
            continue
        at = torch.from_numpy(expected[buffer["name"] + "_at"])
        new = new.cpu()
        limits = info["tolerance"], expected.get(buffer["name"] + "_bound", 0.0)
        if not new.is_floating_point():
            limits = 0.0, 0.0
        error, good = difference(new[at].to(torch.float64).numpy(), expected[buffer["name"]], *limits)
        assert good, f"{info['name']}: {buffer['name']} is wrong by {error:.3g} of its largest value"
        worst = max(worst, error)
        width = new.element_size()
        before_bytes, bytes_ = (t.view(torch.uint8).view(-1, width) for t in (old, new))
        bytes_[at] = before_bytes[at]
        same = torch.equal(bytes_, before_bytes)
        assert same, f"{info['name']}: something is written to {buffer['name']} outside its domain"
    return worst


if __name__ == "__main__":
    print(
        KERNEL["name"],  # noqa: F821
        "error",
        check(globals()[KERNEL["name"]], KERNEL, os.path.splitext(sys.argv[0])[0] + ".npz"),  # noqa: F821
    )
