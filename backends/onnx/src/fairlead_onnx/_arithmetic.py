"""Rules of arithmetic and elementary functions, element by element."""

from __future__ import annotations

from fairlead.ir import DType, TensorType, Value
from fairlead_onnx._call import Call, Rule, wrapped
from fairlead_onnx._exponentials import root
from fairlead_onnx._integers import divided, rest
from fairlead_onnx._logic import is_nan, is_nonzero
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__ = ["truncate"]


def _unary(op: str) -> Rule:
    def write(c: Call) -> Ref:
        return c.writer.same(op, c.tensor(0, c.dtype))

    return write


for _aten, _onnx in {
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "log": "Log",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "sinh": "Sinh",
    "tan": "Tan",
    "tanh": "Tanh",
}.items():
    rule(f"aten.{_aten}.default")(_unary(_onnx))


@rule("aten.abs.default")
def absolute(c: Call) -> Ref:
    return c.tensor(0) if c.dtype in (DType.bool, DType.u8) else c.writer.abs(c.tensor(0))


@rule("aten.neg.default")
def negative(c: Call) -> Ref:
    return c.writer.same("Neg", c.tensor(0))


@rule("aten.sign.default")
def sign(c: Call) -> Ref:
    if c.dtype is DType.bool:
        return c.tensor(0)
    w, x = c.writer, c.tensor(0)
    if not w.has("Sign", x.dtype):
        zero = w.number(0, x.dtype)
        above, below = (w.same("Less", *pair, result=DType.bool) for pair in ((zero, x), (x, zero)))
        return w.same("Sub", w.cast(above, x.dtype), w.cast(below, x.dtype))
    return _where_nan(w, x, w.same("Sign", x), 0.0)


def _where_nan(w: Writer, x: Ref, other: Ref, value: float) -> Ref:
    return w.op("Where", is_nan(w, x), w.number(value, x.dtype), other, dtype=x.dtype) if x.dtype.is_floating else other


@rule("aten.ceil.default")
def ceil(c: Call) -> Ref:
    return c.writer.same("Ceil", c.exact(0)) if c.dtype.is_floating else c.tensor(0)


@rule("aten.floor.default")
def floor(c: Call) -> Ref:
    return c.writer.same("Floor", c.exact(0)) if c.dtype.is_floating else c.tensor(0)


@rule("aten.round.default")
def round_half_to_even(c: Call) -> Ref:
    return c.writer.same("Round", c.exact(0)) if c.dtype.is_floating else c.tensor(0)


@rule("aten.trunc.default")
def trunc(c: Call) -> Ref:
    return truncate(c.writer, c.exact(0)) if c.dtype.is_floating else c.tensor(0)


def truncate(w: Writer, x: Ref) -> Ref:
    """Towards zero, the sign of zero kept."""
    positive = w.same("Less", w.number(0.0, x.dtype), x, result=DType.bool)
    return w.select(positive, w.same("Floor", x), w.same("Ceil", x))


@rule("aten.add.Tensor")
def add(c: Call) -> Ref:
    if c.dtype is DType.bool:
        other = c.tensor(1, DType.bool)
        added = other if c.args[2] else c.writer.op("And", other, c.writer.number(False, DType.bool))
        return c.writer.op("Or", c.tensor(0, DType.bool), added)
    return c.writer.same("Add", c.tensor(0, c.dtype), _times_alpha(c))


@rule("aten.sub.Tensor")
def sub(c: Call) -> Ref:
    return c.writer.same("Sub", c.tensor(0, c.dtype), _times_alpha(c))


def _times_alpha(c: Call) -> Ref:
    alpha = c.number(2) if len(c.args) > 2 else 1
    other = c.tensor(1, c.dtype)
    return other if alpha == 1 else c.writer.same("Mul", other, c.operand(alpha, c.dtype))


@rule("aten.mul.Tensor")
def mul(c: Call) -> Ref:
    if c.dtype is DType.bool:
        return c.writer.op("And", c.tensor(0, DType.bool), c.tensor(1, DType.bool))
    a, b = c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    root = _inverted_root(c.writer, b)
    return c.writer.same("Mul", a, b) if root is None else c.writer.same("Div", a, root)


def _inverted_root(w: Writer, x: Ref) -> Ref | None:
    """The root r where x is 1 / r: runtimes know an RMS norm by its ``x / sqrt(...)``."""
    inverse = w.producer(x)
    root = w.producer(Ref(inverse.inputs[0], x.dtype)) if inverse is not None and inverse.op == "Reciprocal" else None
    return Ref(root.outputs[0], x.dtype) if root is not None and root.op == "Sqrt" else None


@rule("aten.div.Tensor")
def div(c: Call) -> Ref:
    return c.writer.same("Div", c.tensor(0, c.dtype), c.tensor(1, c.dtype))


@rule("aten.div.Tensor_mode")
def div_mode(c: Call) -> Ref:
    mode = c.args[2]
    if mode is None:
        return div(c)
    if mode not in ("trunc", "floor"):
        raise Declined(f"{c.node.op} rounded by {mode!r}")
    if c.dtype.is_floating:
        step = c.out.dtype if _rounds_each_step(c) else c.dtype
        a, b = c.exact(0, c.dtype), c.exact(1, c.dtype)
        if mode == "floor":
            return _floor_divide(c.writer, a, b, step)
        return truncate(c.writer, c.writer.rounded(c.writer.same("Div", a, b), step))
    return divided(c.writer, c.tensor(0, c.dtype), _divisor(c), floor=mode == "floor")


def _rounds_each_step(c: Call) -> bool:
    """Whether eager rounds a quotient of halves before it is made whole: not by a single number.

    Source: div_trunc_kernel and div_floor_kernel in ATen/native/cpu/BinaryOpsKernel.cpp.
    """
    divisor = c.args[1]
    return (
        isinstance(divisor, Value) and isinstance(divisor.type, TensorType) and set(divisor.type.shape) - {1} != set()
    )


def _divisor(c: Call) -> int:
    """A divisor of integers that is a number: eager raises on a zero, and a runtime stops the process."""
    given = c.args[1]
    if isinstance(given, (bool, int)) and (divisor := wrapped(int(given), c.dtype)) != 0:
        return divisor
    raise Declined("integer division by a tensor: eager raises on a zero, an ONNX kernel does not")


def _floor_divide(w: Writer, a: Ref, b: Ref, step: DType) -> Ref:
    """Python's ``//`` for floats, which is not the floor of the quotient, each result rounded to ``step``.

    Source: c10::div_floor_floating.
    """
    zero, one = w.number(0.0, a.dtype), w.number(1.0, a.dtype)
    quotient = w.rounded(w.same("Div", a, b), step)
    mod = w.same("Mod", a, b, fmod=1)
    whole = w.rounded(w.same("Div", w.rounded(w.same("Sub", a, mod), step), b), step)
    whole = w.select(_sign_differs(w, mod, b), w.rounded(w.same("Sub", whole, one), step), whole)
    low = w.same("Floor", whole)
    up = w.same("Greater", w.same("Sub", whole, low), w.number(0.5, a.dtype), result=DType.bool)
    low = w.select(up, w.same("Add", low, one), low)
    signed_zero = w.same("Mul", quotient, zero)
    low = w.select(is_nonzero(w, whole), low, signed_zero)
    return w.select(w.same("Equal", b, zero, result=DType.bool), quotient, low)


def _sign_differs(w: Writer, mod: Ref, b: Ref) -> Ref:
    zero = w.number(0, b.dtype) if not b.dtype.is_floating else w.number(0.0, b.dtype)
    nonzero = w.op("Not", w.same("Equal", mod, zero, result=DType.bool))
    below = [w.same("Less", r, zero, result=DType.bool) for r in (mod, b)]
    return w.op("And", nonzero, w.op("Xor", *below))


@rule("aten.remainder.Tensor")
def remainder(c: Call) -> Ref:
    w = c.writer
    if not c.dtype.is_floating:
        return rest(w, c.tensor(0, c.dtype), _divisor(c), floor=True)
    b = c.exact(1, c.dtype)
    mod = w.same("Mod", c.exact(0, c.dtype), b, fmod=1)
    return w.select(_sign_differs(w, mod, b), w.same("Add", mod, b), mod)


@rule("aten.fmod.Tensor")
def fmod(c: Call) -> Ref:
    if c.dtype.is_floating:
        return c.writer.same("Mod", c.exact(0, c.dtype), c.exact(1, c.dtype), fmod=1)
    return rest(c.writer, c.tensor(0, c.dtype), _divisor(c), floor=False)


@rule("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def power(c: Call) -> Ref:
    exponent = c.args[1]
    if isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
        special = _simple_power(c, exponent)
        if special is not None:
            return special
    if not c.dtype.is_floating:
        raise Declined("an integer power is computed in floating point by ONNX runtimes")
    return c.writer.same("Pow", c.tensor(0, c.dtype), c.tensor(1, c.dtype))


def _simple_power(c: Call, exponent: float) -> Ref | None:
    w, x = c.writer, c.tensor(0, c.dtype)
    if not c.dtype.is_floating:
        return _repeated_product(w, x, int(exponent)) if exponent in range(1, 17) else None
    match exponent:  # 2 and 3 stay powers: runtimes compute them as products, and know activations and norms by them
        case 1:
            return x
        case 0.5:
            return root(w, x)
        case -0.5:
            return w.same("Reciprocal", root(w, x))
        case -1:
            return w.same("Reciprocal", x)
        case -2:
            return w.same("Reciprocal", w.same("Mul", x, x))
    return None


def _repeated_product(w: Writer, x: Ref, exponent: int) -> Ref:
    if exponent == 1:
        return x
    half = _repeated_product(w, x, exponent // 2)
    square = w.same("Mul", half, half)
    return w.same("Mul", square, x) if exponent % 2 else square
