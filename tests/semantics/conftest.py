"""What holds for every backend: each test runs through all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

BACKENDS = ("eager", "inductor", "onnxrt", "openvino", "openxla", "tvm", "ipex")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
