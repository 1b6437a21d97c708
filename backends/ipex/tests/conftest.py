"""What tests of more than one file share."""

from __future__ import annotations

import pytest
import torch

from fairlead_ipex import _dtypes


@pytest.fixture(params=["in bfloat16", "in float32"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a processor that is quicker with bfloat16, and of another."""
    if request.param == "in bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN has no bfloat16 on this processor")
    monkeypatch.setattr(_dtypes, "multiplies_bfloat16", lambda: request.param == "in bfloat16")
