"""Options are checked against this machine, and reach the compiled model."""

from __future__ import annotations

from pathlib import Path

import openvino
import pytest
import torch

import fairlead
from fairlead.errors import OptionValueError
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, TensorType, Value
from fairlead_openvino import OpenVINOOptions
from fairlead_openvino._compiled import compile_file, model_file


@pytest.mark.parametrize("device", ["NPX", "HETERO:NPX,CPU", "MULTI:CPU,NPX(2)", "AUTO:-NPX"])
def test_a_device_that_is_not_there_is_refused_before_anything_is_compiled(device: str) -> None:
    with pytest.raises(OptionValueError) as caught:
        fairlead.compile(torch.relu, backend="openvino", options={"device": device})
    what, where, advice = str(caught.value).splitlines()
    assert what == f"FL202: option 'device' is {device!r}, and OpenVINO finds no 'NPX' on this machine"
    assert where == f"  from: backend 'openvino', openvino {openvino.__version__}"
    assert "pass one of CPU" in advice


@pytest.mark.parametrize("device", ["GPU", "NPU"])
def test_an_accelerator_is_refused_where_there_is_none(device: str) -> None:
    found = {name.partition(".")[0] for name in openvino.Core().available_devices}
    if device in found:
        assert OpenVINOOptions(device=device).device == device
        return
    with pytest.raises(OptionValueError, match=f"OpenVINO finds no '{device}' on this machine"):
        OpenVINOOptions(device=device)


def test_options_reach_the_compiled_model(tmp_path: Path) -> None:
    x, y = (Value(i, TensorType(DType.f32, (2,))) for i in range(2))
    node = Node("aten.relu.default", (x,), (y,))
    graph = Graph("g", Kind.inference, (Input(x),), (node,), (Output(y),), ())
    options = OpenVINOOptions(
        performance_hint="throughput", cache_dir=str(tmp_path), config={"ENABLE_CPU_PINNING": True}
    )
    model = compile_file(graph, model_file(graph), options, {}).model
    assert model.get_property("PERFORMANCE_HINT") == "THROUGHPUT"
    assert model.get_property("ENABLE_CPU_PINNING") is True
    assert any(tmp_path.iterdir())


def test_a_program_runs_on_a_choice_of_devices() -> None:
    x = torch.tensor([-1.0, 2.0])
    compiled = fairlead.compile(torch.relu, backend="openvino", options={"device": "HETERO:CPU"})
    assert torch.equal(compiled(x), x.relu())
