"""The rule of convolutions. XLA is fast on a CPU where channels come last, in weights too."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from fairlead.ir import Node, Value
from fairlead_openxla._call import Call
from fairlead_openxla._layouts import Layout, Wanted
from fairlead_openxla._numbers import Array, cast, operand, wide
from fairlead_openxla._rules import rule
from fairlead_openxla._target import on_cpu, precision

__all__: list[str] = []

_SPATIAL = "DHW"


def _places(node: Node) -> Wanted | None:
    weight = node.args[1]
    if node.args[6] is True or not isinstance(weight, Value):
        return None
    return 1, Layout(_hwio(weight.tensor.rank))


def _hwio(rank: int) -> tuple[int, ...]:
    return (*range(2, rank), 1, 0)


def _symbolic(node: Node) -> str | None:
    settings = (node.args[3], node.args[4], node.args[5], node.args[7])
    numbers = all(isinstance(n, int) for s in settings for n in (s if isinstance(s, tuple) else (s,)))
    return None if numbers else "a convolution with a symbolic stride or padding"


def _unless(node: Node) -> str | None:
    return _symbolic(node) or _spread_on_cuda(node)


def _spread_on_cuda(node: Node) -> str | None:
    """A program for the CPU leaves out the zeros that are put between rows; one for CUDA may multiply by them."""
    x, stride, transposed = node.args[0], node.args[3], node.args[6]
    spreads = transposed is True and isinstance(stride, tuple) and any(n != 1 for n in stride)
    if not spreads or not isinstance(x, Value) or x.tensor.device == "cpu":
        return None
    return "a transposed convolution with a stride, in which a NaN spreads: XLA multiplies it by zeros between rows"


@rule("convolution", unless=_unless, places=_places)
def convolution(
    c: Call,
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
) -> Array:
    spatial = c.declared(1).rank - 2
    batched = x.ndim == spatial + 2
    # a processor adds up what is widened, and cuDNN adds up halves in f32
    factor = operand if on_cpu() else cast
    x = factor(x if batched else x[None], c.dtype)
    stride, padding, dilation, output_padding = (
        n * spatial if len(n) == 1 else n for n in (stride, padding, dilation, output_padding)
    )
    if transposed:
        kernel = _flipped(factor(weight, c.dtype), groups)
        reach = [d * (k - 1) for d, k in zip(dilation, kernel.shape[:spatial], strict=True)]
        pads = [(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding, strict=True)]
        steps, spread = (1,) * spatial, stride
    else:
        placed = c.placed()
        kernel = factor(placed[0] if placed else jnp.transpose(weight, _hwio(spatial + 2)), c.dtype)
        pads, steps, spread = [(p, p) for p in padding], stride, (1,) * spatial
    out = lax.conv_general_dilated(
        jnp.moveaxis(x, 1, -1),
        kernel,
        steps,
        pads,
        lhs_dilation=spread,
        rhs_dilation=dilation,
        dimension_numbers=_numbers(spatial),
        feature_group_count=groups,
        precision=precision(),
    )
    out = jnp.moveaxis(out if bias is None else wide(out) + operand(bias, c.dtype), -1, 1)
    return out if batched else out[0]


def _numbers(spatial: int) -> tuple[str, str, str]:
    letters = _SPATIAL[3 - spatial :]
    return f"N{letters}C", f"{letters}IO", f"N{letters}C"


def _flipped(weight: Array, groups: int) -> Array:
    """The weight of the convolution over a spread input that a transposed one is: turned around, I O/g HW to HWIO."""
    inputs, outputs, *size = weight.shape
    spatial = len(size)
    grouped = jnp.reshape(weight, (groups, inputs // groups, outputs, *size))
    order = (*range(3, 3 + spatial), 1, 0, 2)
    kernel = jnp.reshape(jnp.transpose(grouped, order), (*size, inputs // groups, groups * outputs))
    return lax.rev(kernel, tuple(range(spatial)))
