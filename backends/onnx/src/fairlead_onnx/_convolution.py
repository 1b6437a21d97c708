"""Rules of convolutions."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx._call import Call
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref

__all__: list[str] = []


@rule("aten.convolution.default")
def convolution(c: Call) -> Ref:
    """Arguments: input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    w, x, weight = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    space = c.rank(0) - 2
    if space < 1 or c.rank(1) != c.rank(0):
        raise Declined("a convolution without a batch dimension")
    if 0 in c.type(0).shape or 0 in c.type(1).shape:
        raise Declined("a convolution of an empty tensor")
    stride, padding, dilation, extra = (c.ints(i, space) for i in (3, 4, 5, 7))
    group = c.ints(8)[0]
    bias = c.maybe(2, c.dtype)
    op = "ConvTranspose" if c.args[6] else "Conv"
    w.kernel_dtype(op, c.dtype)
    if min(padding) < 0:
        raise Declined("a convolution with negative padding")
    pads = (*padding, *padding)
    if op == "Conv":
        return w.op(op, x, weight, bias, strides=stride, pads=pads, dilations=dilation, group=group)
    return w.op(op, x, weight, bias, strides=stride, pads=pads, dilations=dilation, group=group, output_padding=extra)


@rule("aten.convolution_backward.default")
def convolution_backward(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: grad, input, weight, bias sizes, stride, padding, dilation, transposed, output padding, groups,
    mask."""
    if c.args[7] or c.ints(9)[0] != 1 or c.dtype is not DType.f32:
        raise Declined("the backward of a grouped or transposed convolution")
    w, space = c.writer, c.rank(1) - 2
    grad, x, weight = c.tensor(0), c.tensor(1), c.tensor(2)
    stride, padding, dilation = (c.ints(i, space) for i in (4, 5, 6))
    size, kernel, steps = c.static(1)[2:], c.static(2)[2:], c.static(0)[2:]
    reach = [(k - 1) * d + (n - 1) * s + 1 for k, d, n, s in zip(kernel, dilation, steps, stride, strict=True)]
    left = [
        n - r + p for n, r, p in zip(size, reach, padding, strict=True)
    ]  # what no window reads, beyond the right pad
    swap = (1, 0, *range(2, space + 2))
    grad_input = grad_weight = grad_bias = None
    if c.wants(0):
        extra = tuple(e + p for e, p in zip(left, padding, strict=True))
        if any(not 0 <= e < max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
            raise Declined("the backward of a convolution that leaves a margin unread")
        grad_input = w.op(
            "ConvTranspose",
            grad,
            weight,
            strides=stride,
            pads=(*padding, *padding),
            dilations=dilation,
            output_padding=extra,
        )
    if c.wants(1):
        ends = tuple(r - n - p for r, n, p in zip(reach, size, padding, strict=True))
        swapped = w.op("Transpose", x, perm=swap)
        swapped, ends = _trimmed(c, swapped, ends)
        by = w.op("Transpose", grad, perm=swap)
        out = w.op("Conv", swapped, by, strides=dilation, pads=(*padding, *ends), dilations=stride)
        grad_weight = w.op("Transpose", out, perm=swap)
    if c.wants(2):
        grad_bias = w.op("ReduceSum", grad, w.ints(0, *range(2, space + 2)), keepdims=0)
    return grad_input, grad_weight, grad_bias


def _trimmed(c: Call, x: Ref, ends: tuple[int, ...]) -> tuple[Ref, tuple[int, ...]]:
    """Negative pads at the end, as slices."""
    cut = [(i + 2, e) for i, e in enumerate(ends) if e < 0]
    if not cut:
        return x, ends
    w = c.writer
    axes, stops = w.ints(*(a for a, _ in cut)), w.ints(*(e for _, e in cut))
    return w.op("Slice", x, w.ints(*[0] * len(cut)), stops, axes), tuple(max(e, 0) for e in ends)
