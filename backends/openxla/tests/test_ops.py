"""Every op of the table of cases, in XLA against eager torch."""

from __future__ import annotations

import pytest

from fairlead_onnx.testing import OpCase, check, op_cases
from fairlead_openxla import backend

DECLINED: dict[str, str] = {
    "aten.convolution_backward.default/f32": "torch has the gradient of a convolution: XLA's is slower on a CPU",
}
"""What is declined, by op and element type: all else in the table has to run."""


@pytest.mark.parametrize("case", op_cases(), ids=str)
def test_an_op_agrees_with_eager_or_is_declined_with_a_known_reason(case: OpCase) -> None:
    reasons = set(check([case], backend).values())
    assert reasons <= {DECLINED.get(f"{case.op}/{case.dtype}")}
