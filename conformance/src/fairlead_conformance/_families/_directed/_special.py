"""Special functions where their formulas change: at zero, at poles, at infinity, left of zero; and complex numbers."""

from __future__ import annotations

from fairlead_conformance._case import Level
from fairlead_conformance._families._directed._row import INF, NAN, Row, c64, f32, f64, i8, i16, i32, i64, ramp, row

__all__ = ["ROWS"]

_AT = f64(0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 9.75, 25.5, -0.5, -1.0, -2.75, INF, -INF, NAN)
_A = f64(0.0, 0.0, 0.5, 0.5, 2.0, 2.0, 2.0, INF, INF, 3.0, -1.0, 0.0)
_B = f64(0.0, 2.0, 0.0, 0.25, 1.0, 9.0, INF, 1.0, INF, 3.5, 1.0, INF)
_S = f64(1.0, 0.5, 1.5, 2.0, 2.0, 2.5, 3.0, 2.0, 4.0, NAN, 3.0, 2.5)
_FROM = f64(2.0, 2.0, 0.3, 1.0, -1.0, -0.5, -0.5, 30.5, 9.0, 1.0, 0.0, 2.0)
_COMPLEX = c64(1 + 2j, 1 + 2j, -3 + 0.5j, 20 - 1j, 20 + 3j, 0.25j, -0.5 - 2j)


def _each(subject: str, ops: str, *args: object) -> list[Row]:
    return [row(subject, f"aten.{op}.default", *args, level=Level.L2) for op in ops.split()]


_MOVED = [5, 5, -5, -5, -5, -1]
_BASES, _POWERS = [1, -1, -1, 2, -3, 1, -1, 3], [-1, -2, -3, -1, -2, 0, 5, 4]

ROWS: tuple[Row, ...] = (
    *_each("special-function", "digamma special_erfcx special_ndtri i0 special_i0e special_i1 special_i1e", _AT),
    *_each("special-function", "erfinv", f64(0.0, -0.0, 0.5, -0.999, 0.999999, 1.0, -1.0, 1.5, NAN)),
    *_each("special-function-of-two", "igamma igammac", _A, _B),
    *_each("zeta", "special_zeta", _S, _FROM),
    *(row("polygamma", "aten.polygamma.default", n, _AT[:-3], level=Level.L2) for n in (0, 2, 3)),
    # Of float64 eager knows ten digits, and of poles left of zero nothing.
    row("polygamma", "aten.polygamma.default", 1, _AT[:9].float(), level=Level.L2),
    *_each("complex", "sigmoid exp log sqrt tanh sin view_as_real abs angle", _COMPLEX),
    *_each("complex-running-sum", "logcumsumexp", _COMPLEX[[1, 1, 5, 2, 6]], 0),
    *_each("complex-running-sum", "logcumsumexp", _COMPLEX[[0, 0, 2, 5, 6, 1]].reshape(3, 2), 1),
    *_each("view-as-complex", "view_as_complex", ramp(3, 2)),
    row("complex-parts", "aten.complex.default", ramp(3, 1), ramp(4), level=Level.L2),
    row("softplus-threshold", "aten.softplus.default", f32(0.5, 1.0, 1.4, 2.0, -2.0, 8.0), 2, 3, level=Level.L2),
    row("round-to-tens", "aten.round.decimals", f64(25.0, 35.0, -15.0, 149.0, 160.0), decimals=-1, level=Level.L2),
    row("round-to-tens", "aten.round.decimals", f64(250.0, 1351.0, -149.0), decimals=-2, level=Level.L2),
    *(row("pow-below-one", "aten.pow.Tensor_Tensor", make(_BASES), make(_POWERS)) for make in (i64, i32, i16, i8)),
    *(
        row("shift-by-much", f"aten.bitwise_{side}_shift.Tensor", make(_MOVED), make(0, -1, 0, n, n - 1, n - 2))
        for side in ("left", "right")
        for make, n in ((i64, 64), (i32, 32), (i8, 8))
    ),
    row("softplus-at-the-threshold", "aten.softplus.default", f64(1.5, 1.25, -1.5), 2, 3, level=Level.L2),
    *_each("gamma-of-zero", "igamma igammac", f32(0.0, 0.0, 0.0, 0.25), f32(0.5, 1.0, 1.5, 0.5)),
    *_each("gamma-near-its-own-place", "igamma igammac", f32(1.0, 3.0, 30.0, 9.0), f32(2.0, 4.0, 31.0, 8.5)),
    *_each("zeta-just-above-one", "special_zeta", f64(1.5, 1.25, 1.9), f64(1.0, 3.5, 12.5)),
    *(row("polygamma", "aten.polygamma.default", n, f32(-0.5, -2.75, -11.3, 40.0), level=Level.L2) for n in (1, 2)),
)
