"""Rules of convolutions."""

from __future__ import annotations

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
    if any(e >= s for e, s in zip(extra, stride, strict=True)):  # torch allows it below the dilation as well
        raise Declined("an output padding that is not below the stride")
    return w.op(op, x, weight, bias, strides=stride, pads=pads, dilations=dilation, group=group, output_padding=extra)
