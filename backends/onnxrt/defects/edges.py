"""What ONNX Runtime's CPU kernels compute wrongly at the edges, with its own API alone: each line should agree.

None is a known failure: `fairlead_onnx` writes other ops, or declines, where `fairlead_onnxrt._target` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

NAN = np.nan


def run(op: str, *arrays: np.ndarray, domain: str = "", **attributes: Any) -> np.ndarray:
    """One op, whose result has the type of the last operand."""
    inputs = [
        ir.Value(name=f"x{i}", shape=ir.Shape(a.shape), type=ir.TensorType(ir.DataType.from_numpy(a.dtype)))
        for i, a in enumerate(arrays)
    ]
    output = ir.Value(name="y", type=inputs[-1].type)
    node = ir.Node(domain, op, inputs, ir.convenience.convert_attributes(attributes), outputs=[output])
    graph = ir.Graph(inputs, [output], nodes=[node], opset_imports={"": 20, "com.microsoft": 1}, name="edge")
    model = ir.serde.serialize_model(ir.Model(graph, ir_version=10)).SerializeToString()
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {v.name: a for v, a in zip(inputs, arrays, strict=True)})[0]


def show(name: str, found: Any, right: str) -> None:
    print(f"{name:32} {found}  right: {right}")


def row(*numbers: float, dtype: type = np.float32) -> np.ndarray:
    return np.array([numbers], dtype)


single, double = row(-40.0, -20.0), row(0.04409083752154772, dtype=np.float64)
eye = np.eye(2)[None, None]
tenths = np.full((1, 10**6), 0.1, np.float32)
show("Where(true, -0, 1)", run("Where", np.array([[True]]), row(-0.0), row(1.0)), "-0")
show("MaxPool of 1, NaN, 2", run("MaxPool", row(1.0, NAN, 2.0)[None], kernel_shape=[3]), "nan")
show("ReduceSum of a million tenths", run("ReduceSum", tenths, keepdims=0), "100000.0")
show("LogSoftmax of 1, NaN, 2 in f64", run("LogSoftmax", row(1.0, NAN, 2.0, dtype=np.float64)), "nan nan nan")
show("Sigmoid of -40, -20", run("Sigmoid", single), f"{1 / (1 + np.exp(-single.astype(np.float64)))}")
words, sevens = row(2**31, 7, dtype=np.int64), row(7, 7, dtype=np.int64)
show("Max of 2**31, 7 and 7 in i64", run("Max", words, sevens), "2147483648 7")
show("Sign of 2**31, 7 in i64", run("Sign", words), "1 1")
around = row(*range(2**31 - 9, 2**31 + 9), dtype=np.int64)
show("ReduceMax around 2**31 in i64", run("ReduceMax", around, keepdims=0), "2147483656")
show(
    "Mod of 2**53 + 1 by 7, as in C",
    run("Mod", row(2**53 + 1, dtype=np.int64), sevens[:, :1], fmod=1),
    f"{(2**53 + 1) % 7}",
)
show(
    "ReduceProd of 2**32 + 1 twice",
    run("ReduceProd", row(2**32 + 1, 2**32 + 1, dtype=np.int64), keepdims=0),
    f"{2**33 + 1}",
)
angles = row(*np.linspace(3.1, 3.18, 9), dtype=np.float64)
units = np.abs(run("Sin", angles) - np.sin(angles)) / np.spacing(np.abs(np.sin(angles)))
show("Sin near pi in f64, units off", units.max(), "1 at most")
scaled = run("FusedMatMul", eye, eye, domain="com.microsoft", alpha=0.1)
show("FusedMatMul by 0.1 in f64", repr(scaled[0, 0, 0, 0]), "0.1")
wave = np.random.default_rng(0).standard_normal((1, 1000, 1)).astype(np.float32)
exact = np.fft.rfft(wave[0, :, 0].astype(np.float64))
found = run("DFT", wave, onesided=1)[0]
error = np.abs(found[:, 0] + 1j * found[:, 1] - exact).max() / np.abs(exact).max()
show("DFT of 1000, relative error", f"{error:.0e}", "less than 1e-06")

# threads that add at one place overwrite one another's sums
places, ones = np.zeros((8000, 1), np.int64), np.ones((8000, 128), np.float32)
sums = run("ScatterND", np.zeros((1000, 128), np.float32), places, ones, reduction="add")
show("ScatterND add, threads", sums[0].min(), "8000.0")
