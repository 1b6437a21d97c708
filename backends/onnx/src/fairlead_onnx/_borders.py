"""Rules that read beyond the ends of images: pads by what is inside, and sliding windows as columns."""

from __future__ import annotations

from fairlead_onnx._call import Call
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref

__all__: list[str] = []


@rule("aten.replication_pad1d.default", "aten.replication_pad2d.default", "aten.replication_pad3d.default")
def replication_pad(c: Call) -> Ref:
    return _padded(c, mirrored=False)


@rule("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default")
def reflection_pad(c: Call) -> Ref:
    return _padded(c, mirrored=True)


def _padded(c: Call, *, mirrored: bool) -> Ref:
    """By the places that are read, along one axis after the other. Pads come in pairs, those of the last axis first."""
    w, x, pads, rank = c.writer, c.tensor(0), c.ints(1), c.rank(0)
    for pair in range(len(pads) // 2):
        axis, (before, after) = rank - 1 - pair, pads[2 * pair : 2 * pair + 2]
        if not before and not after:
            continue
        size = c.static(0)[axis]
        places = [_inside(i, size, mirrored) for i in range(-before, size + after)]
        x = w.op("Gather", x, w.ints(*places), axis=axis)
    return x


def _inside(place: int, size: int, mirrored: bool) -> int:
    if mirrored:
        return size - 1 - abs(size - 1 - abs(place))
    return min(max(place, 0), size - 1)


@rule("aten.im2col.default")
def im2col(c: Call) -> Ref:
    """Arguments: input, kernel, dilation, padding, stride."""
    w, x, rank = c.writer, c.tensor(0), c.rank(0)
    kernel, dilation, padding, stride = (c.ints(i, 2) for i in range(1, 5))
    shape = c.static(0)
    if 0 in shape:
        raise Declined("windows of an empty tensor")
    sides = tuple(range(rank - 2, rank))
    ends = [*[0] * (rank - 2), *padding]
    if any(padding):
        wide = w.kernel_dtype("Pad", x.dtype)
        x = w.cast(w.op("Pad", w.cast(x, wide), w.ints(*ends, *ends), c.operand(0, wide)), x.dtype)
    axis = rank - 2
    for side, k, d, p, s in zip(sides, kernel, dilation, padding, stride, strict=True):
        count = (shape[side] + 2 * p - d * (k - 1) - 1) // s + 1
        places = [at * d + i * s for at in range(k) for i in range(count)]
        x = w.op("Gather", x, w.const(places, w.ints().dtype, (k, count)), axis=axis)
        axis += 2
    order = (*range(rank - 2), rank - 2, rank, rank - 1, rank + 1)
    return w.reshape(w.op("Transpose", x, perm=order), c.out.shape)
