"""What was compiled for one size is not taken for another."""

from __future__ import annotations

import pytest
import torch

from fairlead.ir import Builder, Graph
from fairlead_inductor import backend


def rows() -> Graph:
    b = Builder("rows")
    b.output(b.op("aten.relu.default", b.input("f32[n, 3]")))
    return b.graph()


def test_each_program_of_unknown_rows_is_compiled_for_its_own(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    for size in (1, 2, 7):
        x = torch.randn(size, 3)
        (found,) = backend.compile(rows(), backend.options_type(), {})([x])
        assert torch.equal(found, x.relu())


def test_one_program_serves_all_sizes_and_another_size_one() -> None:
    executable = backend.compile(rows(), backend.options_type(), {})
    for size in (1, 2, 7, 1, 50):
        x = torch.randn(size, 3)
        (found,) = executable([x])
        assert torch.equal(found, x.relu())
    assert len(executable._variants) == 2  # type: ignore[attr-defined]
