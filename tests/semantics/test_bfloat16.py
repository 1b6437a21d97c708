"""Where torch has this processor's instructions for bfloat16, programs that are mostly its products run there."""

from __future__ import annotations

import pytest
import torch

import fairlead
from fairlead.interpret import _bfloat16


@pytest.mark.parametrize("backend", ["onnxrt", "openvino", "openxla", "tvm"])
@pytest.mark.parametrize("has_instructions", [True, False])
def test_products_of_bfloat16_run_where_they_are_quick(
    backend: str, has_instructions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bfloat16, "has_instructions", lambda: has_instructions)
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: has_instructions)
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).bfloat16().eval()
    x = torch.randn(32, 64, dtype=torch.bfloat16)
    run = fairlead.compile(layer, backend=backend, fallback=("eager",))
    with torch.no_grad():
        torch.testing.assert_close(run(x), layer(x), rtol=0.02, atol=0.01)  # intermediate values are rounded or not
    (graph,) = run.fairlead.placement.graphs
    gelu = next(node for node in graph.nodes if node.op == "aten.gelu.default")
    assert (gelu.backend == "eager") is has_instructions
    assert gelu.reason.startswith("slower than eager here: ") is has_instructions


@pytest.mark.parametrize(
    ("backend", "keeps"), [("onnxrt", True), ("openvino", True), ("openxla", False), ("tvm", False)]
)
def test_instructions_that_are_slower_count_where_weights_are_widened_at_each_call(
    backend: str, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bfloat16, "has_instructions", lambda: True)
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: False)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).bfloat16().eval()
    run = fairlead.compile(layer, backend=backend, fallback=("eager",))
    with torch.no_grad():
        run(torch.randn(32, 64, dtype=torch.bfloat16))
    (graph,) = run.fairlead.placement.graphs
    gelu = next(node for node in graph.nodes if node.op == "aten.gelu.default")
    assert (gelu.backend == backend) is keeps


@pytest.mark.parametrize("backend", ["onnxrt", "openvino", "openxla"])  # tvm has no products of bfloat16
def test_a_backend_runs_what_it_can_where_no_fallback_is_allowed(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for test in ("has_instructions", "multiplies_bfloat16"):
        monkeypatch.setattr(_bfloat16, test, lambda: True)
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).bfloat16().eval()
    x = torch.randn(32, 64, dtype=torch.bfloat16)
    run = fairlead.compile(layer, backend=backend, fallback=())
    with torch.no_grad():
        torch.testing.assert_close(run(x), layer(x), rtol=0.02, atol=0.01)
    assert run.fairlead.placement.native_share == 1
