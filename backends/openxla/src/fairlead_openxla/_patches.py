"""Rules that unfold an image into columns, one for each place of a window, and that fold columns up."""

from __future__ import annotations

import functools
import itertools
import math

import jax
import jax.numpy as jnp

from fairlead.ir import Node
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._rules import Unless, rule

__all__: list[str] = []

_MOST_PLACES = 128
"""Each element of a window is a slice in the compiled program."""


def _columns(
    x: Array, kernel: tuple[int, ...], dilation: tuple[int, ...], padding: tuple[int, ...], stride: tuple[int, ...]
) -> Array:
    lead = x.shape[:-2]
    padded = jnp.pad(x, [(0, 0)] * len(lead) + [(p, p) for p in padding])
    counts = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(padded.shape[-2:], kernel, dilation, stride, strict=True)
    ]
    taken = []
    for offsets in itertools.product(*map(range, kernel)):
        starts = [o * d for o, d in zip(offsets, dilation, strict=True)]
        cut = tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, counts, stride, strict=True))
        taken.append(padded[(..., *cut)])
    whole = jnp.stack(taken, len(lead))
    return jnp.reshape(whole, (*lead[:-1], lead[-1] * len(taken), math.prod(counts)))


def _large(kernel: int) -> Unless:
    def unless(node: Node) -> str | None:
        size = math.prod(node.args[kernel])  # type: ignore[arg-type]
        return f"columns of windows of {size} elements" if size > _MOST_PLACES else None

    return unless


def _pair(values: tuple[int, ...]) -> tuple[int, ...]:
    return values * 2 if len(values) == 1 else values


@rule("im2col", unless=_large(1), takes_complex=True)
def im2col(
    c: Call,
    x: Array,
    kernel: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
) -> Array:
    return _columns(x, *map(_pair, (kernel, dilation, padding, stride)))


@rule("col2im", unless=_large(2))
def col2im(
    c: Call,
    columns: Array,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
) -> Array:
    """What `im2col` is the adjoint of."""
    columns = wide(columns)
    kernel, dilation, padding, stride = map(_pair, (kernel, dilation, padding, stride))
    function = functools.partial(_columns, kernel=kernel, dilation=dilation, padding=padding, stride=stride)
    (out,) = jax.linear_transpose(function, jax.ShapeDtypeStruct(c.shape(), columns.dtype))(columns)
    return out
