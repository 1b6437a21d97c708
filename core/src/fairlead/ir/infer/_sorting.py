"""Ops that order and look up: sorting, selection of the largest, search in sorted numbers, counting."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim
from fairlead.ir.infer._rule import Number, Operand, Results, Rule, require
from fairlead.ir.infer._sizes import axis_of, like, replaced, with_shape


def sort(self: TensorType, dim: int, descending: bool) -> Results:
    """The values in order, and where each was."""
    axis_of(dim, self.rank)
    return like(self), like(self, DType.i64)


def stable_sort(self: TensorType, stable: bool | None, dim: int, descending: bool) -> Results:
    """The values in order, and where each was."""
    return sort(self, dim, descending)


def topk(self: TensorType, k: Dim, dim: int, largest: bool, sorted: bool) -> Results:  # noqa: A002 - ATen's name
    """The first k along a dimension, and where each was."""
    axis = axis_of(dim, self.rank)
    size = self.shape[axis] if self.shape else 1
    if isinstance(k, int):
        require(k >= 0 and not (isinstance(size, int) and k > size), f"{k} of {size} are asked for")
    found = with_shape(self, replaced(self.shape, axis, k))
    return found, like(found, DType.i64)


def bucketize(self: Operand, boundaries: TensorType, out_int32: bool, right: bool) -> Results:
    """For each number the index of its interval."""
    require(boundaries.rank == 1, "the boundaries are no list")
    shape = self.shape if isinstance(self, TensorType) else ()
    return with_shape(boundaries, shape, DType.i32 if out_int32 else DType.i64)


def searchsorted(
    sorted_sequence: TensorType,
    self: Operand,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: TensorType | None,
) -> Results:
    """For each number the index where it would go."""
    shape = self.shape if isinstance(self, TensorType) else ()
    return with_shape(sorted_sequence, shape, DType.i32 if out_int32 else DType.i64)


def histc(self: TensorType, bins: int, min: Number, max: Number) -> Results:  # noqa: A002 - ATen's names
    """A count for each of the bins, in the dtype of the numbers."""
    require(bins > 0, f"there are {bins} bins")
    return with_shape(self, (bins,))


def bincount(self: TensorType, weights: TensorType | None, minlength: Dim) -> Results:
    """As many counts as the largest number says: only the data tell."""
    return None


def unique(self: TensorType, sorted: bool, return_inverse: bool, return_counts: bool) -> Results:  # noqa: A002 - ATen's name
    """How many differ, only the data tell; where each went is known, if it is asked for."""
    return None, like(self, DType.i64) if return_inverse or return_counts else with_shape(self, (0,), DType.i64), None


def unique_along(
    self: TensorType,
    dim: int,
    sorted: bool,  # noqa: A002 - ATen's name
    return_inverse: bool,
    return_counts: bool,
) -> Results:
    """How many differ, only the data tell."""
    return None, None, None


def unique_consecutive_along(self: TensorType, dim: int, return_inverse: bool, return_counts: bool) -> Results:
    """How many differ, only the data tell."""
    return None, None, None


def unique_consecutive(self: TensorType, return_inverse: bool, return_counts: bool, dim: int | None) -> Results:
    """How many differ, only the data tell."""
    return None, None, None


RULES: dict[str, Rule] = {
    "aten.sort.default": sort,
    "aten.sort.stable": stable_sort,
    "aten.topk.default": topk,
    "aten.bucketize.Tensor": bucketize,
    "aten.searchsorted.Tensor": searchsorted,
    "aten.histc.default": histc,
    "aten.bincount.default": bincount,
    "aten._unique2.default": unique,
    "aten.unique_consecutive.default": unique_consecutive,
    "aten.unique_dim.default": unique_along,
    "aten.unique_dim_consecutive.default": unique_consecutive_along,
}
