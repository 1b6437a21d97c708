"""Ops that make one number of many, along dimensions: sums, extremes, statistics, and cumulative ones."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.infer._promotion import floating_of, real_of, summed_of
from fairlead.ir.infer._rule import Number, Results, Rule, require
from fairlead.ir.infer._sizes import axes_of, axis_of, like, reduced, with_shape

Axes = tuple[int, ...]


def over(x: TensorType, dim: Axes | int | None, keepdim: bool, dtype: DType) -> TensorType:
    """The result of a reduction over some dimensions, or all where none is listed."""
    listed = (dim,) if isinstance(dim, int) else dim
    axes = axes_of(listed, x.rank) if listed else tuple(range(x.rank))
    return with_shape(x, reduced(x.shape, axes, keepdim), dtype)


def sum_dims(self: TensorType, dim: Axes | None, keepdim: bool, dtype: DType | None) -> Results:
    """Integers and bools add up in int64."""
    return over(self, dim, keepdim, dtype or summed_of(self.dtype))


def product_dim(self: TensorType, dim: int, keepdim: bool, dtype: DType | None) -> Results:
    """Integers and bools multiply in int64."""
    return over(self, dim, keepdim, dtype or summed_of(self.dtype))


def product_all(self: TensorType, dtype: DType | None) -> Results:
    """Integers and bools multiply in int64."""
    return with_shape(self, (), dtype or summed_of(self.dtype))


def mean_dims(self: TensorType, dim: Axes | None, keepdim: bool, dtype: DType | None) -> Results:
    """Floating numbers alone have a mean."""
    found = dtype or self.dtype
    require(found.is_floating or found.is_complex, f"there is no mean of {found}")
    return over(self, dim, keepdim, found)


def extreme_dims(self: TensorType, dim: Axes, keepdim: bool) -> Results:
    """The dtype stays."""
    return over(self, dim, keepdim, self.dtype)


def truth_dims(self: TensorType, dim: Axes | None, keepdim: bool) -> Results:
    """A bool; of bytes a byte."""
    dtype = DType.u8 if self.dtype is DType.u8 else DType.bool
    if dim == ():  # an empty list of dimensions is none of them here, unlike in a sum
        return like(self, dtype)
    return over(self, dim, keepdim, dtype)


def logsumexp(self: TensorType, dim: Axes, keepdim: bool) -> Results:
    """A function into the reals."""
    return over(self, dim, keepdim, floating_of(self.dtype))


def vector_norm(self: TensorType, ord: Number, dim: Axes | None, keepdim: bool, dtype: DType | None) -> Results:  # noqa: A002 - ATen's name
    """The absolute value's dtype."""
    return over(self, dim, keepdim, real_of(dtype or self.dtype))


def variance(self: TensorType, dim: Axes | None, correction: Number | None, keepdim: bool) -> Results:
    """Real, also of complex numbers."""
    return over(self, dim, keepdim, real_of(self.dtype))


def variance_and_mean(self: TensorType, dim: Axes | None, correction: Number | None, keepdim: bool) -> Results:
    """The variance is real, the mean is not where the numbers are not."""
    return over(self, dim, keepdim, real_of(self.dtype)), over(self, dim, keepdim, self.dtype)


def position(self: TensorType, dim: int | None, keepdim: bool) -> Results:
    """An index, into all elements where no dimension is given."""
    require(dim is not None or 0 not in self.shape, "there is no extreme of no elements")
    return over(self, dim, keepdim, DType.i64)


def value_and_position(self: TensorType, dim: int, keepdim: bool) -> Results:
    """A value and an index for each line along a dimension."""
    return over(self, dim, keepdim, self.dtype), over(self, dim, keepdim, DType.i64)


def kth_value(self: TensorType, k: int | str, dim: int, keepdim: bool) -> Results:
    """A value and an index for each line along a dimension."""
    return value_and_position(self, dim, keepdim)


def one_of_all(self: TensorType) -> Results:
    """One element."""
    return with_shape(self, ())


def scan(self: TensorType, dim: int, dtype: DType | None) -> Results:
    """A running sum or product: integers and bools in int64."""
    axis_of(dim, self.rank)
    return like(self, dtype or summed_of(self.dtype))


def scan_in_kind(self: TensorType, dim: int) -> Results:
    """A running value: the dtype stays."""
    axis_of(dim, self.rank)
    return like(self)


def scan_with_position(self: TensorType, dim: int) -> Results:
    """A running extreme and where it was."""
    axis_of(dim, self.rank)
    return like(self), like(self, DType.i64)


RULES: dict[str, Rule] = {
    "aten.sum.dim_IntList": sum_dims,
    "aten.prod.dim_int": product_dim,
    "aten.prod.default": product_all,
    "aten.mean.dim": mean_dims,
    "aten.amax.default": extreme_dims,
    "aten.amin.default": extreme_dims,
    "aten.any.dims": truth_dims,
    "aten.all.dims": truth_dims,
    "aten.logsumexp.default": logsumexp,
    "aten.linalg_vector_norm.default": vector_norm,
    "aten.var.correction": variance,
    "aten.var_mean.correction": variance_and_mean,
    "aten.argmax.default": position,
    "aten.argmin.default": position,
    "aten.max.dim": value_and_position,
    "aten.min.dim": value_and_position,
    "aten.median.dim": value_and_position,
    "aten.nanmedian.dim": value_and_position,
    "aten.mode.default": value_and_position,
    "aten.kthvalue.default": kth_value,
    "aten.max.default": one_of_all,
    "aten.min.default": one_of_all,
    "aten.median.default": one_of_all,
    "aten.nanmedian.default": one_of_all,
    "aten.cumsum.default": scan,
    "aten.cumprod.default": scan,
    "aten.logcumsumexp.default": scan_in_kind,
    "aten.cummax.default": scan_with_position,
    "aten.cummin.default": scan_with_position,
}
