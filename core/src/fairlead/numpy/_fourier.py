"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._table import Call, op

# ATen divides by nothing (0), the root of the count (1) or the count (2), in either direction.
_Norm = Literal["backward", "ortho", "forward"]
_FORWARD: tuple[_Norm, ...] = ("backward", "ortho", "forward")
_BACKWARD: tuple[_Norm, ...] = ("forward", "ortho", "backward")


@op("_fft_r2c")
def _r2c(call: Call, x: Array, dims: Sequence[int], normalization: int, onesided: bool) -> Array:
    transform = np.fft.rfftn if onesided else np.fft.fftn
    return transform(wide(x), axes=tuple(dims), norm=_FORWARD[normalization])


@op("_fft_c2r")
def _c2r(call: Call, x: Array, dims: Sequence[int], normalization: int, last: int) -> Array:
    sizes = [x.shape[d] for d in dims[:-1]] + [last]
    return np.fft.irfftn(wide(x), sizes, tuple(dims), norm=_BACKWARD[normalization])


@op("_fft_c2c")
def _c2c(call: Call, x: Array, dims: Sequence[int], normalization: int, forward: bool) -> Array:
    if forward:
        return np.fft.fftn(wide(x), axes=tuple(dims), norm=_FORWARD[normalization])
    return np.fft.ifftn(wide(x), axes=tuple(dims), norm=_BACKWARD[normalization])
