"""What torch's own cache on disk serves of this backend, which stores no executables."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

from fairlead.backend import Serializable
from fairlead.ir import Builder
from fairlead_inductor import backend


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
    assert not isinstance(backend, Serializable)
