"""Every op of the lowering's table, in OpenVINO against eager torch."""

from __future__ import annotations

import pytest

from fairlead.ir import DType
from fairlead_onnx.testing import check, op_cases
from fairlead_openvino import backend

REASONS = {
    "OpenVINO computes the gradient of a convolution slower than torch",
    "OpenVINO computes 64-bit integers in 32 bits",
    "OpenVINO has no Mod for f32",
    *(f"OpenVINO has no Relu for {dtype}" for dtype in ("i8", "i16", "i32", "i64", "u8")),
    "OpenVINO's TopK does not keep equal elements in order",
    "OpenVINO has no MatMul for i64",
    "OpenVINO has no MatMul for i32",
    "OpenVINO's GatherElements needs an index as large as the operand in every other dimension",
    "OpenVINO does not compute in f64",
    "fractions counted in f64, which OpenVINO does not compute in",
    "an output padding that is not below the stride",
    "average pooling in ceil mode with a last window that is cut off",
}
"""Why a case may be declined."""

OPS = sorted({case.op for case in op_cases()})


@pytest.mark.parametrize("op", OPS)
def test_an_op_agrees_with_eager_or_is_declined_with_a_known_reason(op: str) -> None:
    """Compiled together, as one by one takes minutes; far 64-bit integers take all of a graph another way."""
    cases = [c for c in op_cases() if c.op == op]
    for together in ([c for c in cases if c.dtype is DType.i64], [c for c in cases if c.dtype is not DType.i64]):
        assert set(check(together, backend).values()) <= REASONS
