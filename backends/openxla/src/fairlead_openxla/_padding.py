"""Rules of padding with a reflection or a repetition of the edge, forward and backward."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._rules import Rule, rule

__all__: list[str] = []


def _padded(x: Array, pad: tuple[int, ...], mode: str) -> Array:
    """Two numbers a dimension, the last dimension first; negative ones cut away after the others have padded."""
    grown, cut = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        grown[x.ndim - 1 - i] = (max(before, 0), max(after, 0))
        cut[x.ndim - 1 - i] = slice(max(-before, 0), -max(-after, 0) or None)
    return jnp.pad(x, grown, mode=mode)[tuple(cut)]


def _pad(mode: str, backward: bool) -> Rule:
    def forward(c: Call, x: Array, pad: tuple[int, ...]) -> Array:
        return _padded(x, pad, mode)

    def gradient(c: Call, grad: Array, x: Array, pad: tuple[int, ...]) -> Array:
        grad = wide(grad)
        function = functools.partial(_padded, pad=pad, mode=mode)
        (out,) = jax.linear_transpose(function, jax.ShapeDtypeStruct(x.shape, grad.dtype))(grad)
        return out

    return gradient if backward else forward


for _rank in (1, 2, 3):
    for _name, _mode in (("reflection", "reflect"), ("replication", "edge")):
        rule(f"{_name}_pad{_rank}d", takes_complex=True)(_pad(_mode, backward=False))
        rule(f"{_name}_pad{_rank}d_backward")(_pad(_mode, backward=True))
