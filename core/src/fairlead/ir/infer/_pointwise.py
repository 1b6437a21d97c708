"""Element-wise ops: the shape that the operands broadcast to, and the dtype that they promote to."""

from __future__ import annotations

from fairlead.ir._model import Token
from fairlead.ir._types import DType, TensorType
from fairlead.ir.infer._promotion import complex_of, floating_of, promoted, real_of, result_dtype
from fairlead.ir.infer._rule import Number, Operand, Results, Rule, require
from fairlead.ir.infer._sizes import broadcast, like, with_shape


def joined(operands: tuple[Operand | None, ...], dtype: DType) -> TensorType:
    """The result of an element-wise op: all operands' shape, on the device of the tensors with dimensions."""
    tensors = [o for o in operands if isinstance(o, TensorType)]
    require(bool(tensors), "it has no tensor among its operands")
    shape = broadcast(*(t.shape for t in tensors))
    place = next((t for t in tensors if t.shape), next((t for t in tensors if t.device != "cpu"), tensors[0]))
    return with_shape(place, shape, dtype)


def unary_same(self: TensorType) -> Results:
    """The dtype stays."""
    return like(self)


def unary_float(self: TensorType) -> Results:
    """Integers and bools become the default floating dtype."""
    return like(self, floating_of(self.dtype))


def unary_real(self: TensorType) -> Results:
    """Complex numbers become real."""
    return like(self, real_of(self.dtype))


def unary_bool(self: TensorType) -> Results:
    """A truth for each element."""
    return like(self, DType.bool)


def angle(self: TensorType) -> Results:
    """Real, and floating."""
    return like(self, real_of(floating_of(self.dtype)))


def round_decimals(self: TensorType, decimals: int) -> Results:
    """The dtype stays."""
    return like(self)


def polygamma(n: int, self: TensorType) -> Results:
    """A function into the reals."""
    return like(self, floating_of(self.dtype))


def mvlgamma(self: TensorType, p: int) -> Results:
    """A function into the reals."""
    return like(self, floating_of(self.dtype))


def frexp(self: TensorType) -> Results:
    """The mantissa, and the exponent as int32."""
    return like(self), like(self, DType.i32)


def binary_promoted(self: Operand, other: Operand) -> Results:
    """The dtype that the operands promote to."""
    return joined((self, other), result_dtype((self, other)))


def binary_scaled(self: Operand, other: Operand, alpha: Number) -> Results:
    """The same; the factor of the second operand does not count."""
    return binary_promoted(self, other)


def binary_float(self: Operand, other: Operand) -> Results:
    """The dtype that the operands promote to, or the default floating one for integers."""
    return joined((self, other), floating_of(result_dtype((self, other))))


def binary_bool(self: Operand, other: Operand) -> Results:
    """A truth for each pair."""
    return joined((self, other), DType.bool)


def div_mode(self: Operand, other: Operand, rounding_mode: str | None) -> Results:
    """A true quotient where nothing is rounded."""
    return binary_float(self, other) if rounding_mode is None else binary_promoted(self, other)


def clamp(self: TensorType, min: Operand | None, max: Operand | None) -> Results:  # noqa: A002 - ATen's names
    """The dtype that the operands and bounds promote to."""
    return joined((self, min, max), result_dtype((self, min, max)))


def where(condition: TensorType, self: Operand, other: Operand) -> Results:
    """The dtype that the branches promote to."""
    return joined((condition, self, other), result_dtype((self, other)))


def complex_(real: TensorType, imag: TensorType) -> Results:
    """The complex dtype with these parts."""
    require(real.dtype == imag.dtype, f"the parts are {real.dtype} and {imag.dtype}")
    return joined((real, imag), complex_of(real.dtype))


def one_parameter(self: TensorType, parameter: object) -> Results:
    """The dtype stays, whatever the parameter."""
    return like(self)


def two_parameters(self: TensorType, first: object, second: object) -> Results:
    """The dtype stays, whatever the parameters."""
    return like(self)


def three_parameters(self: TensorType, first: object, second: object, third: object) -> Results:
    """The dtype stays, whatever the parameters."""
    return like(self)


def backward(grad_output: TensorType, self: TensorType) -> Results:
    """A gradient for each element; what it is computed from promotes."""
    return joined((grad_output, self), promoted(grad_output.dtype, self.dtype))


def backward_one(grad_output: TensorType, self: TensorType, parameter: object) -> Results:
    """A gradient for each element, whatever the parameter."""
    return backward(grad_output, self)


def to_copy(
    self: TensorType,
    dtype: DType | None,
    layout: Token | None,
    device: Token | None,
    pin_memory: bool | None,
    non_blocking: bool,
    memory_format: Token | None,
) -> Results:
    """Another dtype, another device."""
    return TensorType(dtype or self.dtype, self.shape, None, device.name if device else self.device)


_UNARY: dict[str, Rule] = {
    **dict.fromkeys(
        [
            "neg",
            "relu",
            "sign",
            "ceil",
            "floor",
            "round",
            "trunc",
            "bitwise_not",
            "silu",
            "hardswish",
            "hardsigmoid",
            "mish",
            "conj_physical",
            "_conj_physical",
        ],
        unary_same,
    ),
    **dict.fromkeys(
        [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "erf",
            "erfc",
            "erfinv",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "reciprocal",
            "rsqrt",
            "sigmoid",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "digamma",
            "lgamma",
            "i0",
            "special_ndtri",
            "special_erfcx",
            "special_i0e",
            "special_i1",
            "special_i1e",
            "special_bessel_j0",
            "special_bessel_j1",
            "special_bessel_y0",
            "special_bessel_y1",
            "special_airy_ai",
            "special_modified_bessel_i0",
            "special_modified_bessel_i1",
            "special_modified_bessel_k0",
            "special_modified_bessel_k1",
            "special_scaled_modified_bessel_k0",
            "special_scaled_modified_bessel_k1",
            "special_spherical_bessel_j0",
        ],
        unary_float,
    ),
    **dict.fromkeys(["isnan", "isinf", "logical_not", "signbit"], unary_bool),
    "abs": unary_real,
    "angle": angle,
    "polygamma": polygamma,
    "clone": one_parameter,
    "gelu": one_parameter,
    "leaky_relu": one_parameter,
    "hardtanh": two_parameters,
    "softplus": two_parameters,
    "elu": three_parameters,
}
"""By name; their overload is ``default``."""

_BINARY: dict[str, Rule] = {
    **dict.fromkeys(("add.Tensor", "sub.Tensor"), binary_scaled),
    **dict.fromkeys(
        [
            "mul.Tensor",
            "maximum.default",
            "minimum.default",
            "bitwise_and.Tensor",
            "bitwise_or.Tensor",
            "bitwise_xor.Tensor",
            "remainder.Tensor",
            "fmod.Tensor",
            "fmax.default",
            "fmin.default",
            "pow.Tensor_Tensor",
            "pow.Tensor_Scalar",
            "pow.Scalar",
            "bitwise_left_shift.Tensor",
            "bitwise_right_shift.Tensor",
            "nextafter.default",
            "gcd.default",
            "lcm.default",
            "hypot.default",
            "igamma.default",
            "igammac.default",
        ],
        binary_promoted,
    ),
    **dict.fromkeys(
        [
            "div.Tensor",
            "atan2.default",
            "copysign.Tensor",
            "ldexp.Tensor",
            "special_zeta.default",
            "special_chebyshev_polynomial_t.default",
            "special_chebyshev_polynomial_u.default",
            "special_chebyshev_polynomial_v.default",
            "special_chebyshev_polynomial_w.default",
            "special_hermite_polynomial_h.default",
            "special_hermite_polynomial_he.default",
            "special_laguerre_polynomial_l.default",
            "special_legendre_polynomial_p.default",
            "special_shifted_chebyshev_polynomial_t.default",
            "special_shifted_chebyshev_polynomial_u.default",
            "special_shifted_chebyshev_polynomial_v.default",
            "special_shifted_chebyshev_polynomial_w.default",
        ],
        binary_float,
    ),
    **dict.fromkeys(
        [
            "eq.Tensor",
            "ne.Tensor",
            "lt.Tensor",
            "le.Tensor",
            "gt.Tensor",
            "ge.Tensor",
            "logical_and.default",
            "logical_or.default",
            "logical_xor.default",
        ],
        binary_bool,
    ),
}

RULES: dict[str, Rule] = {
    **{f"aten.{name}.default": rule for name, rule in _UNARY.items()},
    **{f"aten.{name}": rule for name, rule in _BINARY.items()},
    "aten.round.decimals": round_decimals,
    "aten.mvlgamma.default": mvlgamma,
    "aten.frexp.Tensor": frexp,
    "aten.div.Tensor_mode": div_mode,
    "aten.clamp.Tensor": clamp,
    "aten.clamp.default": clamp,
    "aten.where.self": where,
    "aten.complex.default": complex_,
    "aten.polar.default": complex_,
    "aten._to_copy.default": to_copy,
    "aten.threshold_backward.default": backward_one,
    "aten.gelu_backward.default": backward_one,
    "aten.silu_backward.default": backward,
    "aten.sigmoid_backward.default": backward,
}
