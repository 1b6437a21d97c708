"""A graph is loaded and run where torch is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, TensorType, Value, write

_CHILD = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
import numpy
from fairlead import ir
import fairlead.numpy

file = ir.read(sys.argv[1])
constants = file.constants()
inputs = [constants.get(i, numpy.ones((3, 4), numpy.float32)) for i in range(len(file.graph.inputs))]
(out,) = fairlead.numpy.run(file.graph, inputs)
numpy.save(sys.argv[2], out)
for op in sorted(fairlead.numpy._table.rules()):
    assert fairlead.numpy.supports(op)
assert "torch" not in sys.modules
"""


def test_a_file_is_read_and_run_without_torch(tmp_path: Path) -> None:
    x, w, b = (Value(i, TensorType(DType.f32, s)) for i, s in enumerate([(3, 4), (5, 4), (5,)]))
    y, z = (Value(i, TensorType(DType.f32, (3, 5))) for i in (3, 4))
    nodes = (Node("aten.linear.default", (x, w, b), (y,)), Node("aten.gelu.default", (y, "none"), (z,)))
    inputs = (Input(x), Input(w, Role.parameter, "w"), Input(b, Role.parameter, "b"))
    graph = Graph("layer", Kind.inference, inputs, nodes, (Output(z),))
    rng = np.random.default_rng(0)
    weight, bias = rng.standard_normal((5, 4)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    write(tmp_path / "layer.fir", graph, {1: weight, 2: bias})
    command = [sys.executable, "-W", "error", "-c", _CHILD, str(tmp_path / "layer.fir"), str(tmp_path / "out.npy")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    linear = (weight.sum(1) + bias).astype(np.float64)
    tanh = 0.5 * linear * (1 + np.tanh(np.sqrt(2 / np.pi) * (linear + 0.044715 * linear**3)))
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), np.tile(tanh, (3, 1)), atol=2e-3)
