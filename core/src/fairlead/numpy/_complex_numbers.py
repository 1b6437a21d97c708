"""Complex numbers: parts, conjugates, and their views as pairs of real ones."""

from __future__ import annotations

import numpy as np

from fairlead.numpy._dtypes import Array, floating, operand, wide
from fairlead.numpy._table import Call, op


@op("complex")
def _complex(call: Call, re: Array, im: Array) -> Array:
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, np.complex128)
    out.real, out.imag = re, im
    return out


@op("polar")
def _polar(call: Call, size: Array, angle: Array) -> Array:
    size, angle = wide(size), wide(angle)
    return _complex(call, size * np.cos(angle), size * np.sin(angle))


@op("conj_physical", "_conj_physical")
def _conj(call: Call, x: Array) -> Array:
    return np.conj(x) if x.dtype.kind == "c" else x


@op("angle")
def _angle(call: Call, x: Array) -> Array:
    """Of negative real numbers pi, of NaN NaN."""
    x = floating(operand(x, call.dtype) if x.dtype.kind in "biu" else x)
    return np.angle(x) if x.dtype.kind == "c" else np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0))


@op("view_as_real")
def _view_as_real(call: Call, x: Array) -> Array:
    return np.stack([x.real, x.imag], -1)


@op("view_as_complex")
def _view_as_complex(call: Call, x: Array) -> Array:
    if x.shape[-1:] != (2,):
        raise ValueError("the last dimension has to hold the two parts")
    return _complex(call, x[..., 0], x[..., 1])
