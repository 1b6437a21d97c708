"""Division of integers by a number, as torch has it at the ends of their range too."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx._writer import Declined, Ref, Writer

__all__ = ["divided", "rest"]

_LARGEST_DIVISOR = 2**23
"""Up to which a first quotient in f32 leaves a rest that f32 divides exactly."""


def divided(w: Writer, a: Ref, divisor: int, *, floor: bool) -> Ref:
    """The quotient, rounded down or towards zero. ``divisor`` is not 0."""
    if abs(divisor) == 1:  # the smallest integer by -1 is a trap of the processor
        return a if divisor == 1 else w.same("Neg", a)
    if _in_floats(w):
        a, narrow = _at_least_32_bits(w, a), a.dtype
        whole, left = _refined(w, a, divisor)
        return w.cast(whole if floor else w.same("Add", whole, _rounds_up(w, a, left, divisor)), narrow)
    b = w.number(divisor, a.dtype)
    if not floor or a.dtype is DType.u8:
        return w.same("Div", a, b)
    negative = _unlike(w, a, divisor)  # a step towards zero before the division never leaves the range
    inner = w.same("Add" if divisor > 0 else "Sub", a, negative)
    return w.same("Sub", w.same("Div", inner, b), negative)


def rest(w: Writer, a: Ref, divisor: int, *, floor: bool) -> Ref:
    """What a division leaves: of the divisor's sign with ``floor``, else of the dividend's."""
    if abs(divisor) == 1:
        return w.same("Sub", a, a)
    if _in_floats(w):
        a, narrow = _at_least_32_bits(w, a), a.dtype
        left, b = _refined(w, a, divisor)[1], w.number(divisor, a.dtype)
        return w.cast(left if floor else w.same("Sub", left, w.same("Mul", _rounds_up(w, a, left, divisor), b)), narrow)
    b = w.number(divisor, a.dtype)
    if floor:
        return w.same("Mod", a, b)
    return w.same("Sub", a, w.same("Mul", w.same("Div", a, b), b))  # a Mod with this sign is made in floats


def _in_floats(w: Writer) -> bool:
    """Whether the runtime divides in f32, which does not hold all integers, or rounds as it likes."""
    return "Div of integers" in w.target.avoided


def _at_least_32_bits(w: Writer, a: Ref) -> Ref:
    return w.cast(a, w.kernel_dtype("Div", a.dtype))


def _refined(w: Writer, a: Ref, divisor: int) -> tuple[Ref, Ref]:
    """The quotient rounded down and the rest, by a division in f32 of the number and another of what it leaves.

    The first is off by some units where the number has more than 24 bits. What it leaves has fewer, so that the second
    is exact, but for its direction of rounding.
    """
    if abs(divisor) > _LARGEST_DIVISOR:
        raise Declined(f"{w.target.name} divides integers in floating point, which does not hold {divisor}")
    b = w.number(divisor, a.dtype)
    near = w.same("Div", a, b)
    left = w.same("Sub", a, w.same("Mul", near, b))
    near = w.same("Add", near, w.same("Div", left, b))
    left = w.same("Sub", a, w.same("Mul", near, b))
    down = _unlike(w, left, divisor)
    return w.same("Sub", near, down), w.same("Add", left, w.same("Mul", down, b))


def _rounds_up(w: Writer, a: Ref, left: Ref, divisor: int) -> Ref:
    """1 where rounding down and towards zero differ: where something is left, and the signs do."""
    zero = w.number(0, a.dtype)
    whole = w.same("Equal", left, zero, result=DType.bool)
    return w.select(whole, zero, _unlike(w, a, divisor))


def _unlike(w: Writer, x: Ref, divisor: int) -> Ref:
    """1 where a number is of the other sign than the divisor, 0 elsewhere."""
    zero = w.number(0, x.dtype)
    pair = (x, zero) if divisor > 0 else (zero, x)
    return w.cast(w.same("Less", *pair, result=DType.bool), x.dtype)
