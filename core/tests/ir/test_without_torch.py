from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.ir import Graph, to_text, write

_CHILD = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "numpy"}:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
from fairlead.ir import DType, Graph, Input, Kind, TensorData, TensorType, Value, fingerprint, read, to_text, write

file = read(sys.argv[1])
print(to_text(file.graph))
for weights in ("inline", "none", "random"):
    write(sys.argv[2], file.graph, file.constants(), weights=weights)
    again = read(sys.argv[2])
    assert again.graph == file.graph and fingerprint(again.graph) == fingerprint(file.graph)
    constants = again.constants()
    assert {i: len(c.data) for i, c in constants.items()} == ({} if weights == "none" else {1: 24})
assert not {"torch", "numpy"} & set(sys.modules)
"""


@pytest.mark.parametrize("weights", ["inline", "random"])
def test_files_need_neither_torch_nor_numpy(tmp_path: Path, small_graph: Graph, weights: str) -> None:
    import torch

    write(tmp_path / "g.fir", small_graph, {1: torch.ones(3, 2)}, weights=weights)  # type: ignore[arg-type]
    command = [sys.executable, "-W", "error", "-c", _CHILD, f"{tmp_path}/g.fir", f"{tmp_path}/again.fir"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == to_text(small_graph)
