"""What is said of devices, and what a session on CUDA would be opened with, as far as a CPU can tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import onnx
import pytest
import torch

from fairlead.errors import OptionValueError
from fairlead.ir import (
    Builder,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    ScalarType,
    Symbol,
    TensorType,
    Value,
)
from fairlead_onnx import lower
from fairlead_onnxrt import OnnxRuntimeOptions, _devices, backend
from fairlead_onnxrt._cuda_session import computed_on_cpu, cuda_options, with_sizes_of_tensors
from fairlead_onnxrt._cuda_target import CUDA_TARGET
from fairlead_onnxrt._devices import CPU, CUDA


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this build of ONNX Runtime had the provider; nothing of it is run."""
    monkeypatch.setattr(_devices, "has_cuda", lambda: True)


def on(device: str, *shape: int | str, dtype: DType = DType.f32) -> TensorType:
    return TensorType(dtype, shape, device=device)


def added(first: TensorType, second: TensorType, to: TensorType | None = None) -> Graph:
    b = Builder("g")
    b.output(b.op("aten.add.Tensor", b.input(first), b.input(second), 1, to=to or first))
    return b.graph()


def verdict(graph: Graph) -> str:
    return backend.supports(graph.nodes[0]).reason


def test_a_build_without_the_provider_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_devices, "has_cuda", lambda: False)
    what, advice = verdict(added(on("cuda:0", 2), on("cuda:0", 2))).split(": ")
    assert what == "this build of ONNX Runtime computes on the CPU only"
    assert advice == "pip uninstall -y onnxruntime, then pip install --force-reinstall --no-deps onnxruntime-gpu"


@pytest.mark.usefixtures("cuda")
def test_tensors_of_one_device_and_numbers_of_the_cpu_are_taken() -> None:
    assert verdict(added(on("cuda:0", 2), on("cuda:0", 2))) == ""
    assert verdict(added(on("cuda:1", 2), on("cpu"))) == ""


@pytest.mark.usefixtures("cuda")
def test_complex_numbers_are_declined_on_cuda_alone() -> None:
    gpu, cpu = (on(device, 2, dtype=DType.c64) for device in ("cuda:0", "cpu"))
    assert verdict(added(gpu, gpu)) == "ONNX Runtime on CUDA is given no complex numbers"
    assert verdict(added(cpu, cpu)) == ""


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (on("cpu", 2), "tensors on cpu and cuda:0: a session is of one device"),
        (on("cuda:1", 2), "tensors on cuda:0 and cuda:1: a session is of one device"),
        (on("xpu:0", 2), "device xpu"),
    ],
)
def test_tensors_of_several_devices_are_declined(second: TensorType, reason: str) -> None:
    assert verdict(added(on("cuda:0", 2), second)) == reason


@pytest.mark.usefixtures("cuda")
def test_a_graph_of_several_devices_is_left_to_others_and_numbers_are_no_device() -> None:
    def of(*types: TensorType) -> Graph:
        b = Builder("g")
        for type_ in types:
            b.output(b.op("aten.exp.default", b.input(type_)))
        return b.graph()

    assert backend.declines_graph(of(on("cpu", 2))) is None
    assert backend.declines_graph(of(on("cuda:0", 2), on("cpu"))) is None
    assert backend.declines_graph(of(on("cuda:0", 2), on("cpu", 2))) == (
        "tensors on cpu and cuda:0: a session is of one device"
    )
    assert backend.declines_graph(of(on("cuda:0", 2), on("cuda:1", 2))) == (
        "tensors on cuda:0 and cuda:1: a session is of one device"
    )


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("op", "dtype", "reason"),
    [
        ("aten.tan.default", DType.f32, "ONNX Runtime on CUDA has no Tan for f32"),
        ("aten.bitwise_not.default", DType.i32, "ONNX Runtime on CUDA has no BitwiseNot for i32"),
        ("aten.cos.default", DType.f64, ""),
        ("aten.exp.default", DType.bf16, ""),
    ],
)
def test_what_the_provider_has_no_kernel_for_is_declined(op: str, dtype: DType, reason: str) -> None:
    b = Builder("g")
    b.output(b.op(op, b.input(on("cuda:0", 4, dtype=dtype))))
    assert verdict(b.graph()) == reason


def stream() -> Any:
    """What is read of a stream: where it is, and its handle."""
    return SimpleNamespace(device=torch.device("cuda", 1), cuda_stream=4711)


def test_the_provider_is_given_the_device_the_stream_and_all_bits_of_float32() -> None:
    found = cuda_options(OnnxRuntimeOptions(), stream())
    assert (found["device_id"], found["user_compute_stream"], found["use_tf32"]) == ("1", "4711", "0")
    for precision, tf32 in (("highest", "0"), ("high", "1"), ("medium", "1")):
        options = backend.options_for_precision(OnnxRuntimeOptions(), precision)  # type: ignore[arg-type]
        assert cuda_options(options, stream())["use_tf32"] == tf32


def test_the_callers_options_of_the_provider_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_onnxrt._options.has_cuda", lambda: False)
    with pytest.raises(OptionValueError, match=f"now {CPU}"):
        OnnxRuntimeOptions(provider_options={CUDA: {"cudnn_conv_algo_search": "EXHAUSTIVE"}})
    monkeypatch.setattr("fairlead_onnxrt._options.has_cuda", lambda: True)
    options = OnnxRuntimeOptions(provider_options={CUDA: {"cudnn_conv_algo_search": "EXHAUSTIVE"}})
    assert cuda_options(options, stream())["cudnn_conv_algo_search"] == "EXHAUSTIVE"


def scaled_by_its_size() -> Graph:
    """exp(x) * (3 * n), where n is an integer that is passed and the first size of x."""
    n, x, e, out = (Value(0, ScalarType(DType.i64)), *(Value(i, TensorType(DType.f32, ("n", 4))) for i in (1, 2, 3)))
    nodes = Node("aten.exp.default", (x,), (e,)), Node("aten.mul.Tensor", (e, DimExpr("3*n")), (out,))
    inputs = Input(n), Input(x)
    return Graph("g", Kind.inference, inputs, nodes, (Output(out),), (Symbol("n", 1, None, (0, None)),))


def test_sizes_are_read_from_tensors_where_one_has_them() -> None:
    graph = scaled_by_its_size()
    assert [s.source for s in with_sizes_of_tensors(graph, frozenset()).symbols] == [(1, 0)]
    assert with_sizes_of_tensors(graph, frozenset({1})).symbols == graph.symbols


def test_only_arithmetic_on_sizes_may_run_on_the_cpu() -> None:
    file = lower(with_sizes_of_tensors(scaled_by_its_size(), frozenset()), target=CUDA_TARGET).file()
    nodes = [(n.name, n.op_type) for n in onnx.ModelProto.FromString(file.model).graph.node]
    products = [n for n in nodes if n[1] == "Mul"]
    assert len(products) == 2
    assert computed_on_cpu(file, [n for n in nodes if n[1] in ("Shape", "Reshape", "Cast")] + products[:1]) == []
    assert computed_on_cpu(file, nodes) == ["Exp", "Mul"]
    assert computed_on_cpu(file, [("a fusion of its own", "FusedMatMul")]) == ["FusedMatMul"]
