"""A part of the table of cases, compiled by TVM against eager torch; the conformance suite has the breadth."""

from __future__ import annotations

import pytest
import torch

from fairlead import ir
from fairlead_onnx.testing import OpCase, check, op_cases
from fairlead_tvm import TVMOptions, backend

_SAMPLE = [case for case in op_cases() if case.index % 24 == 5]


@pytest.mark.parametrize("case", _SAMPLE, ids=str)
def test_an_op_agrees_with_eager_or_is_declined_with_a_reason(case: OpCase) -> None:
    assert all(reason for reason in check([case], backend).values())


def test_the_place_of_an_extreme_is_the_first_of_equals_and_of_nans() -> None:
    b = ir.Builder("g")
    x = b.input("f32[3, 20]", "x")
    for out in (*b.ops("aten.max.dim", x, 1, False), b.op("aten.argmin.default", x, None, False)):
        b.output(out)
    x_ = torch.randint(-3, 3, (3, 20)).float()
    x_[1, 7] = x_[1, 11] = float("nan")
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})([x_])
    torch.testing.assert_close(found, [*x_.max(1), x_.argmin()], rtol=0, atol=0, equal_nan=True)


def test_a_running_sum_of_float32_is_added_up_in_float64() -> None:
    b = ir.Builder("g")
    b.output(b.op("aten.cumsum.default", b.input("f32[3, 5000]", "x"), 1))
    x = torch.randn(3, 5000)
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})([x])
    torch.testing.assert_close(found, [x.cumsum(1)], rtol=0, atol=0)
