"""Rules of Fourier transforms, one dimension after the other, in f64: those of f32 lose more digits than torch's."""

from __future__ import annotations

import jax.numpy as jnp

from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array
from fairlead_openxla._rules import rule

__all__: list[str] = []

_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")
"""What NumPy calls to scale by nothing, by the root of the count, and by the count."""


@rule("_fft_r2c", takes_complex=True)
def r2c(c: Call, x: Array, dims: tuple[int, ...], normalization: int, onesided: bool) -> Array:
    norm, x = _FORWARD[normalization], x.astype(jnp.float64)
    *others, last = dims
    out = jnp.fft.rfft(x, axis=last, norm=norm) if onesided else jnp.fft.fft(x, axis=last, norm=norm)
    for dim in others:
        out = jnp.fft.fft(out, axis=dim, norm=norm)
    return out


@rule("_fft_c2r", takes_complex=True)
def c2r(c: Call, x: Array, dims: tuple[int, ...], normalization: int, size: int) -> Array:
    norm, x = _BACKWARD[normalization], x.astype(jnp.complex128)
    *others, last = dims
    for dim in others:
        x = jnp.fft.ifft(x, axis=dim, norm=norm)
    return jnp.fft.irfft(x, size, last, norm=norm)


@rule("_fft_c2c", takes_complex=True)
def c2c(c: Call, x: Array, dims: tuple[int, ...], normalization: int, forward: bool) -> Array:
    transform, norm = (jnp.fft.fft, _FORWARD) if forward else (jnp.fft.ifft, _BACKWARD)
    x = x.astype(jnp.complex128)
    for dim in dims:
        x = transform(x, axis=dim, norm=norm[normalization])
    return x
