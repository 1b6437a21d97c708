"""``FAIRLEAD_DEBUG``: every graph and what each backend made of it, in files that a person reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import fairlead
from fairlead import _debug, ir
from fairlead._program import Step
from fairlead.backend import Executable, Readable, Refittable
from fairlead.errors import FairleadError
from fairlead.ir import Graph, Kind
from fairlead.partition import Part

WRITTEN = {
    "inductor": {"0.output_code.py": "extern_kernels"},
    "onnxrt": {"onnx.txt": "Gemm", "optimized.onnx.txt": "FusedGemm"},
    "openvino": {"onnx.txt": "MatMul", "steps.txt": "f32[4,8]"},
    "openxla": {"0.stablehlo.mlir": "stablehlo.dot_general", "0.hlo.txt": "HloModule"},
    "tvm": {"relax.py": "@R.function"},
    "ipex": {"module.py": "def forward"},
}
"""By backend, the files of a Part and what stands in each."""


def parsed(text: str) -> ir.Graph:
    (graph,) = ir.parse(text).graphs
    return graph


@pytest.fixture
def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).eval()


@pytest.mark.parametrize("name", WRITTEN)
def test_graphs_and_what_a_backend_made_of_them_are_written(
    name: str, model: torch.nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path / "debug"))
    compiled = fairlead.compile(model, backend=name, fallback=())
    x = torch.randn(4, 16)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    (folder,) = (tmp_path / "debug").iterdir()
    assert folder.name.startswith("inference_0-")
    files = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    captured, prepared = (parsed(files.pop(f"{kind}.fir.txt")) for kind in ("captured", "prepared"))
    assert [node.op for node in prepared.nodes] == ["aten.linear.default", "aten.relu.default", "aten.linear.default"]
    assert len(captured.inputs) == len(prepared.inputs) == 5
    first = files.pop("placement.txt").splitlines()[0].split()
    assert first[:3] == [name, "aten.linear.default", "(native)"]
    assert parsed(files.pop("inference_0_0.fir.txt")).nodes
    assert files.keys() == {f"inference_0_0.{file}" for file in WRITTEN[name]}
    for file, text in WRITTEN[name].items():
        assert text in files[f"inference_0_0.{file}"]


def test_without_the_variable_nothing_is_asked(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlead_onnxrt._executable import SessionExecutable

    def readable(self: SessionExecutable) -> dict[str, str]:
        raise AssertionError("asked")

    monkeypatch.delenv("FAIRLEAD_DEBUG", raising=False)
    monkeypatch.setattr(SessionExecutable, "readable", readable)
    with torch.no_grad():
        fairlead.compile(model, backend="onnxrt", fallback=())(torch.randn(4, 16))


def test_what_cannot_be_shown_costs_a_warning(
    model: torch.nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from fairlead_onnxrt._executable import SessionExecutable

    def readable(self: SessionExecutable) -> dict[str, str]:
        raise OSError("disk full")

    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path))
    monkeypatch.setattr(SessionExecutable, "readable", readable)
    with torch.no_grad(), caplog.at_level("WARNING", logger="fairlead"):  # others may have silenced the root
        fairlead.compile(model, backend="onnxrt", fallback=())(torch.randn(4, 16))
    assert "onnxrt shows nothing of inference_0_0: OSError: disk full" in caplog.text


def test_a_graph_over_budget_is_there_to_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path))
    compiled = fairlead.compile(lambda x: torch.lgamma(x).abs(), backend="onnxrt", max_fallback=0)
    with pytest.raises(FairleadError, match="FL401"):
        compiled(torch.randn(4))
    assert "aten.lgamma" in next(tmp_path.glob("*/captured.fir.txt")).read_text("utf-8")


def test_backends_for_gpus_show_theirs_too() -> None:
    from fairlead_cudagraphs._executable import CudaGraphsExecutable
    from fairlead_tensorrt._executable import EngineExecutable

    assert issubclass(CudaGraphsExecutable, Readable)
    assert issubclass(EngineExecutable, Readable)


class Talkative:
    """An executable that says all that one may say, and something that core does not know yet."""

    baked = frozenset({1})
    fresh_outputs = False
    takes_parameters = True
    says_more = "later"

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        return inputs

    def readable(self) -> Mapping[str, str]:
        return {"said.txt": "said"}


class Refitted(Talkative):
    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        self.constants = constants


@pytest.mark.parametrize("kind", [Talkative, Refitted])
def test_what_an_executable_says_is_said_by_the_one_that_is_shown(
    kind: type[Talkative], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path))
    graph, executable = Graph("g", Kind.inference, (), (), ()), kind()
    shown: Executable = _debug.shown(graph, Part("acme", graph), executable)
    assert shown is not executable
    names = {name for name in dir(executable) if not name.startswith("_")}
    assert {n for n in names if getattr(shown, n) != getattr(executable, n)} <= {"refit"}
    assert isinstance(shown, Refittable) is isinstance(executable, Refittable)
    if isinstance(shown, Refittable):
        shown.refit({1: torch.ones(1)})
        assert vars(executable)["constants"] == {1: torch.ones(1)}
    step = Step(Part("acme", graph), (0, 1), 2)
    step.install(shown)
    assert (step.detaches, step.inputs) == (False, (0,))
    assert not hasattr(shown, "says_nothing")
