"""Engines that are built on a machine without a device, and what their builder says of them."""

from __future__ import annotations

import pytest
import torch

import fairlead_tensorrt
from fairlead.backend import Probe, Support
from fairlead.errors import CompileError
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, Symbol, TensorType, Value
from fairlead_onnx.testing import OpCase, graph_of, op_cases
from fairlead_tensorrt import TensorRTOptions, backend, build

pytest.importorskip("tensorrt_rtx", reason="the builder of TensorRT-RTX is not installed")


def layer(dtype: DType = DType.f32, rows: int | str = 4) -> Graph:
    """A linear layer and a GELU, with weights."""
    x, w, b = (Value(i, TensorType(dtype, s)) for i, s in enumerate(((rows, 16), (8, 16), (8,))))
    y, z = (Value(i, TensorType(dtype, (rows, 8))) for i in (3, 4))
    nodes = (Node("aten.linear.default", (x, w, b), (y,)), Node("aten.gelu.default", (y, "none"), (z,)))
    inputs = (Input(x), Input(w, Role.parameter), Input(b, Role.parameter))
    symbols = (Symbol(rows, 2, None, (0, 0)),) if isinstance(rows, str) else ()
    return Graph("layer", Kind.inference, inputs, nodes, (Output(z),), symbols)


def weights(dtype: torch.dtype = torch.float32) -> dict[int, torch.Tensor]:
    return {1: torch.randn(8, 16, dtype=dtype), 2: torch.randn(8, dtype=dtype)}


def test_an_engine_has_layers_types_and_weights_by_name() -> None:
    engine = build(layer(), constants=weights())
    assert engine.layers
    assert set(engine.precisions) == {"Float"}
    assert engine.named == (1, 2)
    assert engine.ranges == {}
    assert engine.weights >= 4 * (8 * 16 + 8)
    assert not engine.refittable


@pytest.mark.parametrize(("dtype", "name"), [(torch.float16, "Half"), (torch.bfloat16, "BFloat16")])
def test_products_of_halves_are_computed_in_halves(dtype: torch.dtype, name: str) -> None:
    half = {torch.float16: DType.f16, torch.bfloat16: DType.bf16}[dtype]
    engine = build(layer(half), constants=weights(dtype))
    single = build(layer(), constants=weights())
    assert engine.precisions[name]
    assert engine.weights < single.weights  # kept as halves, so that no product reads them widened


@pytest.mark.parametrize(("precision", "name"), [("f16", "Half"), ("bf16", "BFloat16")])
def test_products_of_f32_are_computed_in_halves_where_that_is_asked_for(precision: str, name: str) -> None:
    options = TensorRTOptions(precision=precision)  # type: ignore[arg-type]
    assert build(layer(), constants=weights(), options=options).precisions[name]


def test_a_size_that_varies_has_the_bounds_of_its_symbol() -> None:
    (found,) = build(layer(rows="s"), constants=weights()).ranges.values()
    assert (found.smallest, found.best, found.largest) == ((2, 16), (16, 16), (512, 16))
    (found,) = build(layer(rows="s"), constants=weights(), sizes={"s": (1, 8, 64)}).ranges.values()
    assert (found.smallest, found.best, found.largest) == ((1, 16), (8, 16), (64, 16))


def test_what_the_sdk_refuses_is_an_error_of_three_lines() -> None:
    with pytest.raises(CompileError) as caught:
        build(layer(), constants=weights(), compute_capabilities=("9.0",))
    first, where, _ = str(caught.value).splitlines()
    assert first.startswith("FL502: graph 'layer' makes no engine: tensorrt_rtx ")
    assert first.endswith("does not build for 9.0, but for 7.5, 8.0, 8.6, 8.9, 12.0, 12.1")
    assert where == "  from: fairlead_tensorrt.build"


def test_what_the_builder_refuses_is_said_in_its_words() -> None:
    with pytest.raises(CompileError, match="FP32 GEMM is not supported"):
        build(layer(), constants=weights(), compute_capabilities=("7.5",))


def test_the_parser_has_the_last_word() -> None:
    x, y = (Value(i, TensorType(DType.i32, (4,))) for i in range(2))
    answer = backend.supports(Node("aten.bitwise_not.default", (x,), (y,)))
    assert answer == Support.no("TensorRT's parser: no BitwiseNot")


def test_the_probe_says_what_is_there_and_what_is_missing() -> None:
    probe = backend.probe()
    assert "tensorrt_rtx" in probe.versions
    if not torch.cuda.device_count():
        assert not probe.ok
        assert probe.reason.endswith("finds no CUDA device; fairlead_tensorrt.build builds without one")


def test_rtx_is_not_ready_on_a_device_that_it_does_not_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")

    def probed(*capability: int) -> Probe:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
        return backend.probe()

    assert [probed(*each).ok for each in ((8, 9), (12, 0), (13, 0), (9, 0), (7, 0))] == [True, True, True, False, False]
    assert probed(9, 0).reason == (
        f"NVIDIA H200 has compute capability 9.0, on which tensorrt_rtx {backend.probe().versions['tensorrt_rtx']} "
        "runs nothing: install tensorrt"
    )


SAMPLED = op_cases()[::16]


@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_what_is_accepted_is_built(case: OpCase) -> None:
    graph = graph_of(case)
    if (answer := backend.supports(graph.nodes[0])).accepted:
        assert fairlead_tensorrt.build(graph).layers is not None
    else:
        assert answer.reason
