"""A part of the table of cases, compiled by TVM against eager torch; the conformance suite has the breadth."""

from __future__ import annotations

import pytest

from fairlead_onnx.testing import OpCase, check, op_cases
from fairlead_tvm import backend

_SAMPLE = [case for case in op_cases() if case.index % 24 == 5]


@pytest.mark.parametrize("case", _SAMPLE, ids=str)
def test_an_op_agrees_with_eager_or_is_declined_with_a_reason(case: OpCase) -> None:
    assert all(reason for reason in check([case], backend).values())
