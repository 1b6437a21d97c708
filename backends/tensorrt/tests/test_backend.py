"""What holds without a device and without TensorRT."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx_ir
import pytest
import torch

from fairlead.backend import Backend, Serializable
from fairlead.errors import BackendNotReadyError
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, TensorType, Value
from fairlead.registry import registry
from fairlead_tensorrt import TensorRTOptions, backend
from fairlead_tensorrt._engine import model_file

SOURCES = Path(__file__).parents[1] / "src/fairlead_tensorrt"


def test_it_is_a_backend_whose_executables_are_stored() -> None:
    found: Backend[TensorRTOptions] = backend
    assert isinstance(found, Serializable)


def test_importing_it_loads_neither_the_sdk_nor_torch() -> None:
    code = "import fairlead_tensorrt, sys; print({'torch', 'tensorrt', 'tensorrt_rtx', 'onnx_ir'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.skipif(torch.cuda.device_count() > 0, reason="there is a device")
def test_without_a_device_it_is_not_ready_and_says_why() -> None:
    with pytest.raises(BackendNotReadyError, match=r"FL105: backend 'tensorrt' is not usable here: "):
        registry.ready("tensorrt")


def test_only_one_file_calls_the_sdk() -> None:
    words = ("OnnxParser", "BuilderFlag", "Refitter", "deserialize_cuda_engine", "create_network")
    callers = {path.name for path in SOURCES.glob("*.py") if any(word in path.read_text("utf-8") for word in words)}
    assert callers == {"_sdk.py"}


def product(dtype: DType) -> Graph:
    a, b, out = (Value(i, TensorType(dtype, (4, 4))) for i in range(3))
    node = Node("aten.mm.default", (a, b), (out,))
    return Graph("product", Kind.inference, (Input(a), Input(b)), (node,), (Output(out),))


def types_of_products(graph: Graph, precision: str) -> list[str]:
    """The element types of what the products of a lowered graph read."""
    options = TensorRTOptions(precision=precision)  # type: ignore[arg-type]
    model = onnx_ir.from_proto(onnx_ir.serde.onnx.ModelProto.FromString(model_file(graph, (), options).model))
    found = []
    for node in model.graph:
        if node.op_type == "MatMul":
            for value in node.inputs:
                assert value is not None
                producer = value.producer()
                dtype = value.dtype if producer is None else onnx_ir.DataType(producer.attributes["to"].as_int())
                found.append(str(dtype))
    return found


@pytest.mark.parametrize(
    ("dtype", "precision", "computed"),
    [
        (DType.f32, "f32", "FLOAT"),
        (DType.f32, "tf32", "FLOAT"),
        (DType.f32, "f16", "FLOAT16"),
        (DType.f32, "bf16", "BFLOAT16"),
        (DType.f16, "f32", "FLOAT16"),
        (DType.bf16, "f32", "BFLOAT16"),
        (DType.bf16, "f16", "BFLOAT16"),
    ],
)
def test_a_product_is_computed_in_the_type_of_its_operands_unless_the_caller_asks(
    dtype: DType, precision: str, computed: str
) -> None:
    assert types_of_products(product(dtype), precision) == [computed, computed]
