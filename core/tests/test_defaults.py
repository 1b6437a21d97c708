"""Which backend a program without a name goes to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import fairlead
from fairlead import _defaults
from fairlead._compile import Request, Session
from fairlead.errors import ArgumentError, BackendNotFoundError, OptionsError
from fairlead.ir import DType, Graph, Input, Kind, TensorType, Value


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("FAIRLEAD_BACKEND", raising=False)
    yield
    for device in (None, *_defaults.DEVICES):
        fairlead.set_default(None, device=device)


def compiled() -> str:
    torch._dynamo.reset()
    program = fairlead.compile(lambda x: x + 1)
    program(torch.ones(2))
    (graph,) = program.fairlead.placement.graphs
    return graph.backend


def test_what_is_chosen_for_the_device_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_BACKEND", "onnxrt")
    assert compiled() == "onnxrt"
    fairlead.set_default("openvino")
    assert compiled() == "openvino"
    fairlead.set_default("eager", device="cpu")
    assert compiled() == "eager"
    fairlead.set_default(None, device="cpu")
    assert compiled() == "openvino"


def test_a_name_in_the_call_comes_before_all() -> None:
    fairlead.set_default("openvino", device="cpu")
    program = fairlead.compile(lambda x: x + 1, backend="eager")
    program(torch.ones(2))
    assert [g.backend for g in program.fairlead.placement.graphs] == ["eager"]


@pytest.mark.parametrize(
    ("devices", "name"),
    [(("cpu",), "openvino"), (("cuda:1",), "cudagraphs"), (("cpu", "cuda:0"), "cudagraphs"), ((), "openvino")],
)
def test_each_graph_goes_by_its_device(devices: tuple[str, ...], name: str) -> None:
    inputs = tuple(Input(Value(i, TensorType(DType.f32, (2,), device=d))) for i, d in enumerate(devices))
    request = Request("inductor", by_device={"cpu": "openvino", "cuda": "cudagraphs"})
    assert request.on(Graph("g", Kind.inference, inputs, (), ())).backend == name
    assert Request("inductor").on(Graph("g", Kind.inference, inputs, (), ())).backend == "inductor"


def test_a_backward_computes_anew_where_the_backend_of_its_device_wants_that() -> None:
    on_cpu = [torch.ones(2), 3]
    assert Session(Request("eager", by_device={"cpu": "inductor"})).recomputes(on_cpu)
    assert not Session(Request("inductor", by_device={"cpu": "eager"})).recomputes(on_cpu)
    assert Session(Request("inductor", by_device={"cuda": "eager"})).recomputes(on_cpu)
    assert not Session(Request("nobackend")).recomputes(on_cpu)


@pytest.mark.parametrize("device", ["mps", "xpu", "cuda:0"])
def test_a_device_that_nothing_runs_on_is_refused(device: str) -> None:
    with pytest.raises(ArgumentError, match=f"no backend of Fairlead runs on '{device}'"):
        fairlead.set_default("eager", device=device)


def test_an_unknown_backend_is_refused_at_once() -> None:
    with pytest.raises(BackendNotFoundError, match="openvinoo"):
        fairlead.set_default("openvinoo", device="cpu")
    assert dict(_defaults.by_device()) == {}


def test_an_option_that_the_chosen_backend_does_not_have_is_an_error() -> None:
    fairlead.set_default("eager")
    fairlead.set_default("onnxrt", device="cpu")
    with pytest.raises(OptionsError, match="spinning"):
        fairlead.compile(lambda x: x + 1, options={"spinning": True})
