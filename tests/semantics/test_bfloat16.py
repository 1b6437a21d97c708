"""Products of bfloat16 run in float32, or where torch has quicker instructions for bfloat16, there."""

from __future__ import annotations

import pytest
import torch

import fairlead
from fairlead.interpret import _bfloat16


@pytest.mark.parametrize("backend", ["onnxrt", "openvino", "openxla", "tvm"])
@pytest.mark.parametrize("multiplies", [True, False])
def test_products_of_bfloat16_run_where_they_are_quick(
    backend: str, multiplies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: multiplies)
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).bfloat16().eval()
    x = torch.randn(32, 64, dtype=torch.bfloat16)
    run = fairlead.compile(layer, backend=backend, fallback=("eager",))
    with torch.no_grad():
        torch.testing.assert_close(run(x), layer(x), rtol=0.02, atol=0.01)  # intermediate values are rounded or not
    (graph,) = run.fairlead.placement.graphs
    gelu = next(node for node in graph.nodes if node.op == "aten.gelu.default")
    assert (gelu.backend == "eager") is multiplies
    assert gelu.reason.startswith("slower than eager here: ") is multiplies


@pytest.mark.parametrize("backend", ["onnxrt", "openvino", "openxla", "tvm"])
def test_a_backend_runs_what_it_can_where_no_fallback_is_allowed(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: True)
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).bfloat16().eval()
    x = torch.randn(32, 64, dtype=torch.bfloat16)
    run = fairlead.compile(layer, backend=backend, fallback=())
    with torch.no_grad():
        torch.testing.assert_close(run(x), layer(x), rtol=0.02, atol=0.01)
    assert run.fairlead.placement.native_share == 1


class Tied(torch.nn.Module):
    """Rows of a matrix that is a factor as well, and a sum that reads it as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.nn.Embedding(64, 32)
        self.norm = torch.nn.LayerNorm(32)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        weight = self.rows.weight
        return self.norm(self.rows(index)) @ weight.t() + weight.sum(-1)


@pytest.mark.parametrize("backend", ["ipex", "onnxrt", "openvino", "openxla", "tvm"])
def test_weights_that_are_kept_in_float32_are_watched(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: False)
    torch.manual_seed(0)
    model, index = Tied().bfloat16().eval(), torch.randint(0, 64, (4, 8))
    run = fairlead.compile(model, backend=backend, fallback=("eager",))
    with torch.no_grad():
        torch.testing.assert_close(run(index), model(index), rtol=0.02, atol=0.3)  # of sums of 32, of about 6
        model.rows.weight.neg_()
        model.norm.weight.mul_(2)
        torch.testing.assert_close(run(index), model(index), rtol=0.02, atol=0.6)
    if backend != "ipex":
        assert run.fairlead.placement.native_share == 1
