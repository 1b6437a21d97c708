"""Rules of comparisons, selection, logic, bits and conversions, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, operand, promoted
from fairlead_openxla._rules import Rule, rule

__all__: list[str] = []


def _comparison(function: Callable[[Array, Array], Array]) -> Rule:
    def write(c: Call, x: Array, y: Array) -> Array:
        dtype = promoted(c.node.args[:2])
        return function(operand(x, dtype), operand(y, dtype))

    return write


for _name, _compare in (
    ("eq", jnp.equal),
    ("ne", jnp.not_equal),
    ("lt", jnp.less),
    ("le", jnp.less_equal),
    ("gt", jnp.greater),
    ("ge", jnp.greater_equal),
):
    rule(f"{_name}.Tensor", takes_complex=_name in ("eq", "ne"))(_comparison(_compare))


@rule("isnan")
def isnan(c: Call, x: Array) -> Array:
    return jnp.isnan(x)


@rule("isinf")
def isinf(c: Call, x: Array) -> Array:
    return jnp.isinf(x)


@rule("signbit")
def signbit(c: Call, x: Array) -> Array:
    return jnp.signbit(x) if jnp.issubdtype(x.dtype, jnp.floating) else x < 0


@rule("where.self", takes_complex=True)
def where(c: Call, condition: Array, x: Array, y: Array) -> Array:
    return jnp.where(cast(condition, DType.bool), cast(x, c.dtype), cast(y, c.dtype))


@rule("masked_fill.Scalar", "masked_fill.Tensor", takes_complex=True)
def masked_fill(c: Call, x: Array, mask: Array, value: Any) -> Array:
    return jnp.where(mask, cast(value, c.dtype), x)


def _logical(function: Callable[..., Array]) -> Rule:
    def write(c: Call, *operands: Array) -> Array:
        return function(*(cast(x, DType.bool) for x in operands))

    return write


rule("logical_and")(_logical(jnp.logical_and))
rule("logical_or")(_logical(jnp.logical_or))
rule("logical_xor")(_logical(jnp.logical_xor))
rule("logical_not")(_logical(jnp.logical_not))


def _bitwise(function: Callable[[Array, Array], Array]) -> Rule:
    def write(c: Call, x: Array, y: Array) -> Array:
        return function(operand(x, c.dtype), operand(y, c.dtype))

    return write


rule("bitwise_and.Tensor")(_bitwise(jnp.bitwise_and))
rule("bitwise_or.Tensor")(_bitwise(jnp.bitwise_or))
rule("bitwise_xor.Tensor")(_bitwise(jnp.bitwise_xor))


@rule("bitwise_not")
def bitwise_not(c: Call, x: Array) -> Array:
    return jnp.bitwise_not(x)


@rule("bitwise_left_shift.Tensor")
def left_shift(c: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    inside = (y >= 0) & (y < 8 * c.dtype.itemsize)
    return jnp.where(inside, jnp.left_shift(x, jnp.where(inside, y, 0)), 0)


@rule("bitwise_right_shift.Tensor")
def right_shift(c: Call, x: Array, y: Array) -> Array:
    """What is shifted out of range leaves the sign."""
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    last = 8 * c.dtype.itemsize - 1
    inside = (y >= 0) & (y <= last)
    return jnp.right_shift(x, jnp.where(inside, y, jnp.asarray(last, y.dtype)))


@rule("_to_copy", "prims.convert_element_type.default", takes_complex=True)
def to_copy(c: Call, x: Array, *rest: Any) -> Array:
    return x


@rule("clone", "alias", takes_complex=True)
def identity(c: Call, x: Array, *rest: Any) -> Array:
    return x


@rule("conj_physical", "_conj_physical", takes_complex=True)
def conj(c: Call, x: Array) -> Array:
    return jnp.conj(x)


@rule("complex", takes_complex=True)
def complex_(c: Call, real: Array, imaginary: Array) -> Array:
    return lax.complex(*jnp.broadcast_arrays(real, imaginary))


@rule("view_as_complex", takes_complex=True)
def view_as_complex(c: Call, x: Array) -> Array:
    return lax.complex(x[..., 0], x[..., 1])


@rule("view_as_real", takes_complex=True)
def view_as_real(c: Call, x: Array) -> Array:
    return jnp.stack([jnp.real(x), jnp.imag(x)], -1)
