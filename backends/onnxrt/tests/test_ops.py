"""Every op of the lowering's table, in ONNX Runtime against eager torch."""

from __future__ import annotations

import pytest

from fairlead_onnx.testing import OpCase, check, op_cases
from fairlead_onnxrt import backend

DECLINED = {
    "aten.cos.default/f64": "ONNX Runtime has no Cos for f64",
    "aten.sin.default/f64": "ONNX Runtime has no Sin for f64",
    "aten.convolution.default/f32": "an output padding that is not below the stride",
    "aten.relu.default/i64": "ONNX Runtime has no Relu for i64",
    "aten.avg_pool2d.default/f32": "average pooling in ceil mode with a last window that is cut off",
    "aten.convolution_backward.default/f32": "ONNX Runtime has no kernel for the gradient of a convolution",
}
"""What is declined, by op and element type: all else in the table has to run."""


@pytest.mark.parametrize("case", op_cases(), ids=str)
def test_an_op_agrees_with_eager_or_is_declined_with_a_known_reason(case: OpCase) -> None:
    reasons = set(check([case], backend).values())
    assert reasons <= {DECLINED.get(f"{case.op}/{case.dtype}")}


@pytest.mark.gpu
@pytest.mark.parametrize("case", op_cases(), ids=str)
def test_an_op_agrees_on_cuda_with_eager_or_is_declined_with_a_reason_of_its_own(case: OpCase) -> None:
    reasons = set(check([case], backend, "cuda:0").values())
    known = DECLINED.get(f"{case.op}/{case.dtype}")
    assert all(reason == known or reason.startswith("ONNX Runtime on CUDA ") for reason in reasons)
