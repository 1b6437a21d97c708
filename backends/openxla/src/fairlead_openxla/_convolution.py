"""The rule of convolutions. On a CPU channels come last, in weights too, and some are written in another form."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType, Node, Value
from fairlead_openxla._call import Call
from fairlead_openxla._layouts import Layout, Wanted
from fairlead_openxla._numbers import Array, cast, operand
from fairlead_openxla._rules import rule
from fairlead_openxla._target import on_cpu, precision
from fairlead_openxla._tiles import in_tiles, tiles
from fairlead_openxla._windows import MOST_PLACES, Windows, in_blocks, over_windows, plus

__all__: list[str] = []

_SPATIAL = "DHW"

_NARROW = 32
"""Channels below which XLA's loops over groups are slow, and the products of tiles too."""

_FEW_TILES = 16
"""Tiles below which their factors, which are larger than the weight, take longer to read than they save."""

_LITTLE = 1 << 15
"""Products that XLA's loops over groups take no longer for than a Part of its own costs."""


def _places(node: Node) -> Wanted | None:
    weight = node.args[1]
    if not isinstance(weight, Value):
        return None
    rank = weight.tensor.rank
    if node.args[6] is True:
        return (1, Layout((0, *range(2, rank), 1))) if _makes_blocks(node) else None
    return 1, Layout(_hwio(rank), tiled=_takes_tiles(node))


def _makes_blocks(node: Node) -> bool:
    """Whether it is a transposed convolution in which each place of the image has a block of the result for itself."""
    _, weight, _, stride, padding, dilation, _, output_padding, groups = node.args
    assert isinstance(weight, Value), "a weight is a tensor"
    size = weight.tensor.shape[2:]
    steps = stride * len(size) if isinstance(stride, tuple) and len(stride) == 1 else stride
    plain = all(isinstance(n, tuple) and set(n) <= {0} for n in (padding, output_padding))
    return plain and groups == 1 and steps == size and isinstance(dilation, tuple) and set(dilation) <= {1}


def _hwio(rank: int) -> tuple[int, ...]:
    return (*range(2, rank), 1, 0)


def _takes_tiles(node: Node) -> bool:
    """Whether it is a convolution by 3 by 3, with the channels and the places with which tiles are faster."""
    _, weight, _, stride, _, dilation, _, _, groups = node.args
    assert isinstance(weight, Value), "a weight is a tensor"
    outputs, channels, *size = weight.tensor.shape
    if weight.tensor.dtype is not DType.f32 or size != [3, 3] or groups != 1:
        return False
    if any(not isinstance(n, tuple) or set(n) != {1} for n in (stride, dilation)):
        return False
    *images, _, rows, columns = node.result.tensor.shape
    if not (isinstance(rows, int) and isinstance(columns, int)):
        return False
    count = math.prod(n for n in images if isinstance(n, int)) * tiles(rows, columns)
    return count >= _FEW_TILES and all(isinstance(n, int) and n >= _NARROW for n in (outputs, channels))


def _symbolic(node: Node) -> str | None:
    settings = (node.args[3], node.args[4], node.args[5], node.args[7])
    numbers = all(isinstance(n, int) for s in settings for n in (s if isinstance(s, tuple) else (s,)))
    return None if numbers else "a convolution with a symbolic stride or padding"


def _unless(node: Node) -> str | None:
    return _symbolic(node) or _spread_on_cuda(node) or _slow_on_cpu(node)


def _spread_on_cuda(node: Node) -> str | None:
    """A program for the CPU leaves out the zeros that are put between rows; one for CUDA may multiply by them."""
    x, stride, transposed = node.args[0], node.args[3], node.args[6]
    spreads = transposed is True and isinstance(stride, tuple) and any(n != 1 for n in stride)
    if not spreads or not isinstance(x, Value) or x.tensor.device == "cpu":
        return None
    return "a transposed convolution with a stride, in which a NaN spreads: XLA multiplies it by zeros between rows"


def _slow_on_cpu(node: Node) -> str | None:
    """Groups of few channels that are not one each, as `over_windows` has them, unless there is little to do."""
    x, weight, transposed, groups = node.args[0], node.args[1], node.args[6], node.args[8]
    assert isinstance(x, Value), "an image is a tensor"
    assert isinstance(weight, Value), "a weight is a tensor"
    if groups == 1 or x.tensor.device != "cpu":
        return None
    first, second, *size = weight.tensor.shape
    places = math.prod(n for n in size if isinstance(n, int))
    inner = first // groups if transposed is True else second  # type: ignore[operator]
    if not isinstance(inner, int) or inner >= _NARROW or (inner == 1 and not transposed and places <= MOST_PLACES):
        return None
    products = places * inner * math.prod(n for n in node.result.tensor.shape if isinstance(n, int))
    if products < _LITTLE:
        return None
    return f"slower than eager here: XLA's convolutions on a CPU in groups of {inner} channels"


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
    x = jnp.moveaxis(factor(x if batched else x[None], c.dtype), 1, -1)
    stride, padding, dilation, output_padding = (
        n * spatial if len(n) == 1 else n for n in (stride, padding, dilation, output_padding)
    )
    size, bias = weight.shape[2:], None if bias is None else operand(bias, c.dtype)
    if transposed and on_cpu() and _makes_blocks(c.node):
        placed = c.placed()
        kernel = factor(placed[0] if placed else jnp.moveaxis(weight, 1, -1), c.dtype)
        out = plus(in_blocks(x, kernel), bias)
    elif transposed:
        kernel = _flipped(factor(weight, c.dtype), groups)
        reach = [d * (k - 1) for d, k in zip(dilation, size, strict=True)]
        pads = tuple((r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding, strict=True))
        out = plus(_by_xla(x, kernel, Windows(size, (1,) * spatial, pads, dilation), groups, stride), bias)
    else:
        out = _forward(c, x, weight, bias, Windows(size, stride, tuple((p, p) for p in padding), dilation), groups)
    out = jnp.moveaxis(out, -1, 1)
    return out if batched else out[0]


def _forward(c: Call, x: Array, weight: Array, bias: Array | None, windows: Windows, groups: int) -> Array:
    if not on_cpu():
        return plus(_by_xla(x, cast(jnp.transpose(weight, _hwio(weight.ndim)), c.dtype), windows, groups), bias)
    placed = c.placed()
    if placed and _takes_tiles(c.node):
        return plus(in_tiles(x, placed[0], windows.pads), bias)
    kernel = operand(placed[0] if placed else jnp.transpose(weight, _hwio(weight.ndim)), c.dtype)
    out = over_windows(x, kernel, bias, windows, groups)
    return plus(_by_xla(x, kernel, windows, groups), bias) if out is None else out


def _by_xla(x: Array, kernel: Array, windows: Windows, groups: int, spread: tuple[int, ...] | None = None) -> Array:
    return lax.conv_general_dilated(
        x,
        kernel,
        windows.stride,
        windows.pads,
        lhs_dilation=spread,
        rhs_dilation=windows.dilation,
        dimension_numbers=_numbers(len(windows.size)),
        feature_group_count=groups,
        precision=precision(),
    )


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
