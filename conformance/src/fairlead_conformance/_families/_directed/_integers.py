"""Integers and truth values: wrapping, division, shifts, and numbers that no float holds."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_conformance._families._directed._row import Row, b1, i8, i16, i32, i64, row, row_of, u8

__all__ = ["ROWS"]

_BIG = i64(9007199254740993, -9007199254740993, 9223372036854775807, -9223372036854775808)
_A, _B = i32(7, -7, 7, -7, 0, 6), i32(2, 2, -2, -2, 5, 3)

ROWS: tuple[Row, ...] = (
    row("floor-division", "aten.div.Tensor_mode", _A, _B, rounding_mode="floor"),
    row("floor-division", "aten.div.Tensor_mode", i64(7, -7, 7, -7), i64(2, 2, -2, -2), rounding_mode="floor"),
    row("floor-division-by-a-number", "aten.div.Tensor_mode", _A, -2, rounding_mode="floor"),
    row("truncating-division", "aten.div.Tensor_mode", _A, _B, rounding_mode="trunc"),
    row("truncating-division", "aten.div.Tensor_mode", i8(-128, 127), i8(3, -2), rounding_mode="trunc"),
    row("division-beyond-f64", "aten.div.Tensor_mode", _BIG, i64(3, 3, 7, 7), rounding_mode="floor"),
    row("remainder-signs", "aten.remainder.Tensor", _A, _B),
    row("remainder-signs", "aten.remainder.Tensor", i8(-128, 127, -7), i8(3, -2, 5)),
    row("fmod-signs", "aten.fmod.Tensor", _A, _B),
    row("wraps", "aten.add.Tensor", i8(127, -128, 100), i8(1, -1, 100)),
    row("wraps", "aten.add.Tensor", u8(255, 200), u8(1, 100)),
    row("wraps", "aten.add.Tensor", i32(2147483647, -2147483648), i32(1, -1)),
    row("wraps", "aten.add.Tensor", i64(9223372036854775807), i64(1)),
    row("wraps", "aten.mul.Tensor", i32(65536, 46341), i32(65536, 46341)),
    row("wraps", "aten.mul.Tensor", i16(300, -300), i16(300, 300)),
    row("wraps", "aten.sub.Tensor", u8(0, 5), u8(1, 10)),
    row("wraps", "aten.neg.default", i8(-128, 127)),
    row("wraps", "aten.abs.default", i32(-2147483648, -5)),
    row("wraps-on-narrowing", "aten._to_copy.default", i32(300, -129, 256), dtype=DType.i8),
    row("wraps-on-narrowing", "aten._to_copy.default", i64(4294967297, -1), dtype=DType.i32),
    row("beyond-f64", "aten.add.Tensor", _BIG, i64(0, 0, 0, 0)),
    row("beyond-f64", "aten.mul.Tensor", i64(3037000499, 94906267), i64(3037000499, 94906267)),
    row("beyond-f64", "aten.maximum.default", _BIG, i64(9007199254740992, -9007199254740992, 0, 0)),
    row("beyond-f64", "aten.eq.Tensor", _BIG, i64(9007199254740992, -9007199254740992, 0, 0)),
    row("beyond-f64", "aten.sum.dim_IntList", i64(9007199254740993, 1, 1), [0]),
    row("beyond-f64", "aten.cumsum.default", i64(9007199254740993, 1, 1), 0),
    row("beyond-f64", "aten.amax.default", i64(9007199254740992, 9007199254740993), [0]),
    row("beyond-f32", "aten.add.Tensor", i32(16777217, -16777219), i32(2, 0)),
    row("beyond-f32", "aten.sum.dim_IntList", i32(16777217, 2, 2), [0]),
    row("beyond-f32", "aten.relu.default", i64(16777217, -5)),
    row("bytes-have-no-sign", "aten.maximum.default", u8(200, 3, 128), u8(3, 200, 127)),
    row("bytes-have-no-sign", "aten.lt.Tensor", u8(200, 3, 128), u8(3, 200, 127)),
    row("bytes-have-no-sign", "aten.amax.default", u8(3, 200, 127), [0]),
    row("left-shift", "aten.bitwise_left_shift.Tensor", i32(1, -1, 3, 1), i32(4, 3, 30, 31)),
    row("right-shift-of-negative", "aten.bitwise_right_shift.Tensor", i32(-16, -1, 17), i32(2, 5, 1)),
    row("right-shift-unsigned", "aten.bitwise_right_shift.Tensor", u8(200, 255), u8(1, 7)),
    row("bits", "aten.bitwise_and.Tensor", i32(-1, 6, -8), i32(5, 3, 7)),
    row("bits", "aten.bitwise_xor.Tensor", i8(-1, 127), i8(1, -128)),
    row("bits", "aten.bitwise_not.default", i64(0, -1, 5)),
    row("bits", "aten.bitwise_not.default", u8(0, 255, 5)),
    row("truth", "aten.bitwise_not.default", b1(True, False)),
    row("truth", "aten.bitwise_and.Tensor", b1(True, False), b1(True, True)),
    row("truth", "aten.add.Tensor", b1(True, True, False), b1(True, False, False)),
    row("truth", "aten.mul.Tensor", b1(True, True, False), b1(True, False, False)),
    row("truth", "aten.maximum.default", b1(True, False), b1(False, False)),
    row("truth-of-integers", "aten.logical_not.default", i32(0, -1, 256)),
    row("truth-of-integers", "aten.logical_xor.default", i32(0, 256, 512), i32(1, 1, 0)),
    row("truth-is-summed-to-i64", "aten.sum.dim_IntList", b1([True] * 300), [0]),
    row("truth-is-ordered", "aten.lt.Tensor", b1(True, False), b1(True, True)),
    row("pow", "aten.pow.Tensor_Scalar", i64(3, -2, 0), 39),
    row("pow-negative", "aten.pow.Tensor_Tensor", i32(-2, 2, 0), i32(3, 10, 0)),
    row("gcd", "aten.gcd.default", i32(12, -12, 0, 0), i32(18, 18, 5, 0)),
    row("lcm", "aten.lcm.default", i32(4, -4, 0), i32(6, 6, 5)),
    row("clamp", "aten.clamp.default", i32(-5, 0, 5), -1, 3),
    row("clamp-by-floats", "aten.clamp.default", i32(-5, 0, 5), -0.5, 3.5),
    row("sign", "aten.sign.default", i8(-128, 0, 127)),
    row("compare-unsigned-with-signed", "aten.lt.Tensor", u8(255, 1), i8(-1, 2)),
    row_of(
        "wraps-in-between",
        lambda b, x: b.op("aten.sub.Tensor", b.op("aten.add.Tensor", x, 100), 100),
        i8(100, -100),
    ),
)
