"""``fairlead capture``: what a model is made of, in one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead import ir
from fairlead.ir import Kind, Role

from .conftest import Command, error


def test_a_model_is_captured_with_its_weights(command: Command, tmp_path: Path) -> None:
    result = command("capture", "models.py:net", "-o", "net.fir")
    assert result.returncode == 0, result.stderr
    file = ir.read(tmp_path / "net.fir")
    assert [n.op for n in file.graph.nodes] == ["aten.linear.default", "aten.relu.default"]
    held = {file.graph.inputs[i].name: data.shape for i, data in file.constants().items()}
    assert held == {"fc.weight": (4, 8), "fc.bias": (4,)}
    assert f"fingerprint {ir.fingerprint(file.module)[:16]}" in result.stdout


def test_training_gives_a_forward_and_a_backward_in_one_file(command: Command, tmp_path: Path) -> None:
    result = command("capture", "models.py:net", "-o", "net.fir", "--train", "--weights", "none", "--json")
    assert result.returncode == 0, result.stderr
    assert [g["kind"] for g in json.loads(result.stdout)["graphs"]] == ["forward", "backward"]
    file = ir.read(tmp_path / "net.fir")
    assert [g.kind for g in file.module.graphs] == [Kind.forward, Kind.backward]
    assert file.constants() == {}


def test_dynamic_dimensions_become_symbols_and_a_type_can_be_asked_for(command: Command, tmp_path: Path) -> None:
    result = command("capture", "models.py:net", "-o", "net.fir", "--dynamic", "--dtype", "bf16")
    assert result.returncode == 0, result.stderr
    graph = ir.read(tmp_path / "net.fir").graph
    assert len(graph.symbols) == 1
    assert {i.value.tensor.dtype for i in graph.inputs if i.role is Role.parameter} == {ir.DType.bf16}


def test_every_graph_of_a_broken_program_is_in_the_file(command: Command, tmp_path: Path) -> None:
    result = command("capture", "models.py:broken", "-o", "net.fir", "--no-locations")
    assert result.returncode == 0, result.stderr
    graphs = ir.read(tmp_path / "net.fir").module.graphs
    assert [[n.op for n in g.nodes] for g in graphs] == [
        ["aten.linear.default", "aten.relu.default"],
        ["aten.add.Tensor"],
    ]
    assert not any(n.location for g in graphs for n in g.nodes)


def test_the_backward_shares_the_weights_of_its_forward(command: Command, tmp_path: Path) -> None:
    assert command("capture", "models.py:net", "-o", "net.fir", "--train").returncode == 0
    file = ir.read(tmp_path / "net.fir")
    forward, backward = (
        {file.module.graphs[number].inputs[i].name: bytes(data.data) for i, data in file.constants(number).items()}
        for number in range(2)
    )
    assert set(forward) == {"fc.weight", "fc.bias"}
    assert all(forward[name] == content for name, content in backward.items())


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("nett", "FL701: no model is called 'nett'"),
        ("missing.fir", "FL701: there is no file 'missing.fir'"),
        ("models.py:absent", "FL701: 'models' has no 'absent'"),
        ("models.py:nothing", "FL301: no graph could be captured: the model runs no op of torch"),
        (
            "models.py:past",
            "FL301: no graph could be captured: the inference graph is left out: it has as_strided of a view",
        ),
        ("models.py:raises", "FL203: the factory 'models.py:raises' raised RuntimeError: no weights today"),
        (
            "models.py:mismatch",
            "FL203: the model 'models.py:mismatch' fails: RuntimeError: mat1 and mat2",
        ),
    ],
)
def test_a_model_that_does_not_come_is_an_error_in_three_lines(command: Command, model: str, problem: str) -> None:
    assert error(command("capture", model, "-o", "net.fir")).startswith(problem)


def test_a_file_that_cannot_be_written_is_found_out_first(command: Command) -> None:
    assert error(command("capture", "mlp", "-o", "no/net.fir")) == "FL203: no/net.fir cannot be written"
