"""What torch's own cache on disk serves of this backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from fairlead.ir import Builder, parse_graph
from fairlead_inductor import backend
from fairlead_inductor._unwrapped import Unwrapped


def test_what_torch_saves_of_its_cache_serves_graphs_of_fixed_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = Builder("g")
    b.output(b.op("aten.tanh.default", b.op("aten.relu.default", b.input("f32[4, 3]"))))
    x, hits = torch.randn(4, 3), []
    for folder in ("first", "second"):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / folder))
        if hits:
            saved = torch.compiler.save_cache_artifacts()
            assert saved is not None
            torch.compiler.load_cache_artifacts(saved[0])
        torch._dynamo.reset()
        counters.clear()
        (found,) = backend.compile(b.graph(), backend.options_type(), {})([x])
        torch.testing.assert_close(found, x.relu().tanh())
        hits.append(counters["inductor"]["fxgraph_cache_hit"])
    assert hits == [0, 1]


def test_what_torch_has_stored_is_called_without_what_surrounds_it_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Autograd's own store would give a function back past everything that is asked of the code within."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    graph = parse_graph(
        """graph @g backward {
  in %0 saved "x" : f32[2, 3, 4, 5]
  %1 = aten.neg.default(%0) : f32[2, 3, 4, 5]
  out %1 intermediate
}"""
    )
    made: list[int] = []
    function = Unwrapped.function

    def counted(self: Unwrapped, wrapped: Any) -> Any:
        made.append(len(self._made))
        return function(self, wrapped)

    monkeypatch.setattr(Unwrapped, "function", counted)
    for _ in range(3):
        torch._dynamo.reset()
        (found,) = backend.compile(graph, backend.options_type(), {})([torch.ones(2, 3, 4, 5)])
        assert torch.equal(found, -torch.ones(2, 3, 4, 5))
    assert made == [1, 1, 1]
