"""How far two correct results of an op may be apart, by the op's class in the opset.

A class speaks of one op in one dtype. What it means for a graph is found by running the graph with each result moved by
as much (`fairlead_conformance._oracle._shaken`): what later ops make of it is anyone's due. Nothing here can be
changed by a backend, but for the numerics that it declares, which a report shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from fairlead.ir import DType, Graph, Node, TensorType, Value, opset
from fairlead.passes import draws
from fairlead_conformance._oracle._spacing import SPACINGS

__all__ = ["CONTRACTIONS", "Noise", "is_drawn", "is_exact", "noise_of", "picks"]

TF32 = 2.0**-10
"""How far the operands of products are rounded by a backend that declares ``tf32``."""

CONTRACTIONS = frozenset(
    f"aten.{name}.default"
    for name in ("mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "linear", "convolution", "addbmm", "addr")
)
"""Sums of products. Run on magnitudes, they give the size of the terms that add up, however these cancel."""

SUMS = frozenset(
    (
        *("aten.sum.dim_IntList", "aten.sum.default", "aten.mean.dim", "aten.mean.default", "aten.cumsum.default"),
        *("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default"),
    )
)
"""Sums of one operand, whose terms have a size likewise."""


@dataclass(frozen=True)
class Noise:
    """What may be wrong with the results of a node.

    ``ulps``: units in the last place of each result. ``terms``: eps of the type in which terms add up, 0 where none do.
    ``by_magnitude``: the op, run on magnitudes, says how large they are. ``least``: the size at which units in the last
    place are taken for smaller results too, or ``operand`` for that of the first operand. ``operands``: how far, in
    proportion, each element of the operands is rounded before the op reads it. ``points``: the operand whose elements
    are places between -1 and 1, which are wrong in proportion to that range, or to themselves where they are outside.
    ``count``: how many numbers of an operand there are for one of a result: a mean over three dimensions adds up all.
    """

    ulps: float
    terms: float = 0.0
    by_magnitude: bool = False
    least: float | Literal["operand"] = 0.0
    operands: float = 0.0
    points: int | None = None
    count: float = 1.0


_ROUNDING = frozenset(
    {
        *("aten.mul.Tensor", "aten.div.Tensor", "aten.div.Tensor_mode", "aten._to_copy.default"),
        *("aten.leaky_relu.default", "aten.ldexp.Tensor"),
    }
)
"""Exact ops that round to the number next to the exact one. Other exact ops move numbers, or pick them."""

_ELEMENTWISE = {
    "aten.erf.default": Noise(4.0, least=1.0),
    "aten.sigmoid.default": Noise(4.0, least=1.0),
    "aten.silu.default": Noise(4.0, least="operand"),
    "aten.mish.default": Noise(4.0, least="operand"),
    "aten.hardsigmoid.default": Noise(4.0, least=1.0),
    "aten.hardswish.default": Noise(4.0, least="operand"),
    "aten.gelu.default": Noise(4.0, least="operand"),
    "aten.gelu_backward.default": Noise(8.0, least="operand"),
    "aten.igamma.default": Noise(86.0),
    "aten.igammac.default": Noise(86.0),
}
"""Functions that libraries approximate to units of their range, not of each result; and those whose series and
continued fractions have more terms than an operand shows: Cephes, of which ATen's are, states a peak of 1.9e-14 for
igamc in float64, which is 86 units."""

_POINTS = {f"aten.grid_sampler_{n}d{way}.default": at for n in (2, 3) for way, at in (("", 1), ("_backward", 2))}
"""Ops that make pixels of points: of ``((x + 1) size - 1) / 2``, as in aten/src/ATen/native/GridSampler.h, each step
rounds a number as large as the picture."""

_LOGARITHMS = frozenset(("aten._log_softmax.default", "aten.logsumexp.default"))
"""Logarithms of sums, which are zero for a sum of one: what is wrong with the sum is wrong with them, however small."""

_SCALED = frozenset(("aten.add.Tensor", "aten.sub.Tensor"))
"""Sums whose second term is multiplied first, and may be rounded then."""

_PICKED = ("exact", "ties")
"""Classes of comparison in which a number is one of the operands', or rounded once."""

_ULPS = re.compile(r"(\d+) ulp")


def noise_of(node: Node, dtype: DType, numerics: Collection[str]) -> Noise | None:
    """What may be wrong with a node whose results have this type; None where nothing may."""
    comparison = _comparison(node)
    if node.op in _ELEMENTWISE:
        return _ELEMENTWISE[node.op]
    if comparison in _PICKED:
        return Noise(0.5) if node.op in _ROUNDING else None
    if node.op in _SCALED and node.args[2] not in (1, -1):
        return Noise(1.0, SPACINGS[dtype].at_one, by_magnitude=True)
    if found := _ULPS.fullmatch(comparison):
        # The reference is no wider than float64, and wrong by a unit itself.
        return Noise(float(found[1]) + (SPACINGS[dtype] == SPACINGS[DType.f64]))
    if node.op in CONTRACTIONS and "tf32" in numerics and dtype in (DType.f32, DType.c64):
        return Noise(2.0, SPACINGS[dtype].at_one, by_magnitude=True, operands=TF32)
    # Half-precision terms add up in float32: a sum in float16 is a defect, not a style.
    terms = SPACINGS[DType.f32].at_one if dtype.itemsize < DType.f32.itemsize else SPACINGS[dtype].at_one
    if node.op in _LOGARITHMS:
        return Noise(2.0, terms, least=1.0)
    by_magnitude = node.op in CONTRACTIONS or node.op in SUMS
    return Noise(2.0, terms, by_magnitude=by_magnitude, points=_POINTS.get(node.op), count=_count(node))


def _count(node: Node) -> float:
    """1 where sizes are symbols."""
    given, made = map(_most, (node.operands(), (r for r in node.results if r is not None)))
    return max(given / made, 1.0) if made else 1.0


def _most(values: Iterable[Value]) -> float:
    """The elements of the largest of floating-point tensors; 0 where a size is a symbol, or there is none."""
    tensors = [v.tensor for v in values if isinstance(v.type, TensorType) and v.type.dtype in SPACINGS]
    sizes = [t.shape for t in tensors]
    if any(isinstance(n, str) for shape in sizes for n in shape):
        return 0.0
    return max((float(math.prod(map(int, shape))) for shape in sizes), default=0.0)


def is_exact(graph: Graph) -> bool:
    """Whether every op of the graph has one correct result, bit by bit."""
    return all(_comparison(node) in _PICKED for node in graph.walk()) and not _keeps_more(graph)


def _comparison(node: Node) -> str:
    """The opset's class, but that the absolute value of what is no complex number is exact."""
    known = opset.spec(node.op)
    if node.op == "aten.abs.default" and not any(v.tensor.dtype.is_complex for v in node.operands()):
        return "exact"
    return known.comparison if known is not None else "accumulation"


def _keeps_more(graph: Graph) -> bool:
    """Whether a half-precision number that was rounded is read again: float32 kept in between is no worse."""
    rounded = {r.id for n in graph.nodes if n.op in _ROUNDING for r in n.results if r is not None and _is_half(r)}
    return any(v.id in rounded for n in graph.nodes for v in n.operands())


def _is_half(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype in SPACINGS and value.type.dtype.itemsize <= 2


def is_drawn(graph: Graph) -> bool:
    """Whether the graph's results depend on random numbers."""
    return any(map(draws, graph.nodes))


def picks(graph: Graph) -> bool:
    """Whether an op of the graph picks one of numbers that are equal: 0 and -0 are, and ATen's own kernels differ."""
    return any(node.op.partition(".")[2].partition(".")[0] in _PICKERS for node in graph.walk())


_PICKERS = frozenset(
    {
        *("amax", "amin", "aminmax", "max", "min", "maximum", "minimum", "fmax", "fmin"),
        *("relu", "relu6", "clamp", "clamp_min", "clamp_max", "hardtanh", "threshold"),
        *("sort", "topk", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin"),
        *("_unique2", "unique_dim", "unique_consecutive", "scatter_reduce", "index_reduce"),
        *("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool3d"),
    }
)
