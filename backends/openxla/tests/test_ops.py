"""Every op of the table of cases, in XLA against eager torch."""

from __future__ import annotations

import pytest

from fairlead_onnx.testing import check, op_cases
from fairlead_openxla import backend

DECLINED: dict[str, str] = {
    "aten.convolution_backward.default/f32": "torch has the gradient of a convolution: XLA's is slower on a CPU",
    **{
        f"aten.angle.default/{dtype}": "aten.angle.default has no rule for XLA"
        for dtype in ("i32", "f32", "f64", "c64")
    },
    **dict.fromkeys(
        ("nn.lstm/f32", "nn.lstm/bf16"),
        "slower than eager here: XLA multiplies the few rows of each step of an LSTM one step at a time",
    ),
    "aten.polar.default/c64": "aten.polar.default has no rule for XLA",
}
"""What is declined, by op and element type: all else in the table has to run, but for some ops of complex numbers."""

OPS = sorted({case.op for case in op_cases()})


@pytest.mark.parametrize("op", OPS)
def test_an_op_agrees_with_eager_or_is_declined_with_a_known_reason(op: str) -> None:
    cases = [case for case in op_cases() if case.op == op]  # compiled together: sooner than one by one
    reasons = check(cases, backend)
    for case in cases:
        known = {None, DECLINED.get(f"{case.op}/{case.dtype}")}
        if case.dtype.is_complex:
            known.add(f"{case.op} of complex numbers")
        assert reasons.get(str(case)) in known, case
