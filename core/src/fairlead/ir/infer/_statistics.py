"""Ops that count and sum by groups: histograms, segments."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim, add
from fairlead.ir.infer._reductions import Axes, over
from fairlead.ir.infer._rule import Number, Results, Rule, require
from fairlead.ir.infer._sizes import axis_of, like, with_shape

Floats = tuple[float, ...]


def histogram(
    self: TensorType,
    bins: int,
    range: Floats | None,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    density: bool,
) -> Results:
    """A count for each of the bins, and their edges."""
    return with_shape(self, (bins,)), with_shape(self, (bins + 1,))


def histogram_of_edges(self: TensorType, bins: TensorType, weight: TensorType | None, density: bool) -> Results:
    """A count for each of the bins, and their edges."""
    return with_shape(self, (_between(bins),)), like(bins)


def _between(edges: TensorType) -> Dim:
    require(edges.rank == 1, "the edges are no list")
    return add(edges.shape[0], -1)


def histogram_edges(
    self: TensorType,
    bins: tuple[int, ...],
    range: Floats | None,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    density: bool,
) -> Results:
    """The edges of the bins of each coordinate."""
    return tuple(with_shape(self, (count + 1,)) for count in bins)


def histogram_in_space(
    self: TensorType,
    bins: tuple[int, ...],
    range: Floats | None,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    density: bool,
) -> Results:
    """A count for each bin of points."""
    return with_shape(self, bins)


def histogram_in_space_of_edges(
    self: TensorType, bins: tuple[TensorType, ...], weight: TensorType | None, density: bool
) -> Results:
    """A count for each bin of points."""
    return with_shape(self, map(_between, bins))


def segment_reduce(
    data: TensorType,
    reduce: str,
    lengths: TensorType | None,
    indices: TensorType | None,
    offsets: TensorType | None,
    axis: int,
    unsafe: bool,
    initial: Number | None,
) -> Results:
    """A value for each segment of a dimension."""
    at = axis_of(axis, data.rank)
    if lengths is not None:
        segments = lengths.shape
    else:
        require(offsets is not None and offsets.rank > 0, "neither lengths nor offsets are given")
        assert offsets is not None
        segments = (*offsets.shape[:-1], add(offsets.shape[-1], -1))
    return with_shape(data, (*segments, *data.shape[at + 1 :]))


def segment_reduce_backward(
    grad: TensorType,
    output: TensorType,
    data: TensorType,
    reduce: str,
    lengths: TensorType | None,
    offsets: TensorType | None,
    axis: int,
    initial: Number | None,
) -> Results:
    """A gradient for each element."""
    return like(data)


def hashed(self: TensorType, dim: Axes, keepdim: bool, mode: int) -> Results:
    """A hash of what lies along dimensions."""
    return over(self, dim, keepdim, DType.u64)


RULES: dict[str, Rule] = {
    "aten.histogram.bin_ct": histogram,
    "aten.histogram.bins_tensor": histogram_of_edges,
    "aten._histogramdd_bin_edges.default": histogram_edges,
    "aten._histogramdd_from_bin_cts.default": histogram_in_space,
    "aten._histogramdd_from_bin_tensors.default": histogram_in_space_of_edges,
    "aten.segment_reduce.default": segment_reduce,
    "aten._segment_reduce_backward.default": segment_reduce_backward,
    "aten.hash_tensor.default": hashed,
}
