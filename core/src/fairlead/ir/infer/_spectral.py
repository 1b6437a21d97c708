"""Fourier transforms."""

from __future__ import annotations

from fairlead.ir._types import TensorType
from fairlead.ir.dims import Dim, add
from fairlead.ir.infer._promotion import complex_of, real_of
from fairlead.ir.infer._rule import Results, Rule, require
from fairlead.ir.infer._sizes import axes_of, floordiv, like, replaced, with_shape

Axes = tuple[int, ...]


def real_to_complex(self: TensorType, dim: Axes, normalization: int, onesided: bool) -> Results:
    """Complex; half of the last listed dimension, and one more, where one side says it all."""
    require(self.dtype.is_floating, f"{self.dtype} is not real and floating")
    axes = axes_of(dim, self.rank)
    require(self.rank > 0 and bool(axes), "no dimension is listed")
    last = axes[-1]
    size = add(floordiv(self.shape[last], 2), 1) if onesided else self.shape[last]
    return with_shape(self, replaced(self.shape, last, size), complex_of(self.dtype))


def complex_to_real(self: TensorType, dim: Axes, normalization: int, last_dim_size: Dim) -> Results:
    """Real; the last listed dimension has the size that is given."""
    require(self.dtype.is_complex, f"{self.dtype} is not complex")
    axes = axes_of(dim, self.rank)
    require(self.rank > 0 and bool(axes), "no dimension is listed")
    return with_shape(self, replaced(self.shape, axes[-1], last_dim_size), real_of(self.dtype))


def complex_to_complex(self: TensorType, dim: Axes, normalization: int, forward: bool) -> Results:
    """The same dtype and shape."""
    require(self.dtype.is_complex, f"{self.dtype} is not complex")
    axes_of(dim, self.rank)
    return like(self)


RULES: dict[str, Rule] = {
    "aten._fft_r2c.default": real_to_complex,
    "aten._fft_c2r.default": complex_to_real,
    "aten._fft_c2c.default": complex_to_complex,
}
