"""Ops that change their meaning, with changes of a test's own: opset 1 has none yet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead import ir
from fairlead.errors import ArgumentError, IRVersionError
from fairlead.ir import Graph, Input, Kind, Module, Node, OpUse, Output, TensorType, Value, parse, parse_graph, to_text
from fairlead.ir import _upgrade as upgrades
from fairlead.ir._upgrade import NewValue, OpChange
from fairlead.ir.opset import specs

replace = msgspec.structs.replace


def _scale_in(node: Node, new: NewValue) -> tuple[Node, ...]:
    """Version 2 has a factor that version 1 did not have."""
    return (replace(node, args=(*node.args, 1.0)),)


def _scale_out(node: Node, new: NewValue) -> tuple[Node, ...] | None:
    return (replace(node, args=node.args[:-1]),) if node.args[-1] == 1.0 else None


def _negative_in(node: Node, new: NewValue) -> tuple[Node, ...]:
    """Version 3 gives the negative of what version 2 gave."""
    value = new(node.result.type)
    return replace(node, results=(value,)), Node("my.neg.default", (value,), node.results)


def _negative_out(node: Node, new: NewValue) -> tuple[Node, ...]:
    return _negative_in(node, new)


CHANGES = (
    OpChange("my.soft.default", 2, 2, "my.soft.default(Tensor self) -> Tensor", _scale_in, _scale_out),
    OpChange(
        "my.soft.default",
        3,
        3,
        "my.soft.default(Tensor self, float scale) -> Tensor",
        _negative_in,
        _negative_out,
    ),
)
OLD = """fairlead-ir 1.0
op hop.cond 1 ""
op my.soft.default 1 "my.soft.default(Tensor self) -> Tensor"

graph @main inference {
  in %0 user "flag" : bool[]
  in %4 user "x" : f32[2]
  %5 = my.soft.default(%4) : f32[2] loc("model.py":3)
  %6 = hop.cond(%0, [%5]) : f32[2] {
    region @yes region {
      in %0 user "" : f32[2]
      %1 = my.soft.default(%0) : f32[2]
      out %1 user
    }
    region @no region {
      in %0 user "" : f32[2]
      out %0 user
    }
  }
  out %6 user
}"""
NEW = """graph @main inference {
  in %0 user "flag" : bool[]
  in %4 user "x" : f32[2]
  %7 = my.soft.default(%4, 1.0) : f32[2] loc("model.py":3)
  %5 = my.neg.default(%7) : f32[2] loc("model.py":3)
  %6 = hop.cond(%0, [%5]) : f32[2] {
    region @yes region {
      in %0 user "" : f32[2]
      %2 = my.soft.default(%0, 1.0) : f32[2]
      %1 = my.neg.default(%2) : f32[2]
      out %1 user
    }
    region @no region {
      in %0 user "" : f32[2]
      out %0 user
    }
  }
  out %6 user
}"""


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An opset in which an op has come to version 3."""
    monkeypatch.setitem(upgrades.CHANGES, "my.soft.default", CHANGES)


def _versions(module: Module) -> dict[str, int]:
    return {op: use.version for op, use in module.ops.items()}


@pytest.mark.usefixtures("changed")
def test_nodes_of_an_older_version_are_upgraded_one_by_one_in_regions_too() -> None:
    module = parse(OLD)
    assert to_text(module.graph, locations=True) == NEW
    assert _versions(module) == {"hop.cond": 1, "my.neg.default": 1, "my.soft.default": 3}


@pytest.mark.usefixtures("changed")
def test_a_file_and_bytes_of_an_older_version_are_upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.delitem(upgrades.CHANGES, "my.soft.default")
        old = parse(OLD)
        ir.write(tmp_path / "old.fir", old)
        data = ir.to_bytes(old)
    assert to_text(ir.read(tmp_path / "old.fir").graph, locations=True) == NEW
    assert to_text(ir.from_bytes(data).graph) == to_text(parse_graph(NEW))


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize(("opset", "version", "arguments"), [(3, 3, 2), (2, 2, 2), (1, 1, 1)])
def test_a_file_is_written_for_an_older_opset(tmp_path: Path, opset: int, version: int, arguments: int) -> None:
    graph = _soft(1.0)
    module = ir.module(graph, ops={"my.soft.default": OpUse(3, "")})
    ir.write(tmp_path / "g.fir", module, opset=opset)
    manifest = ir.read(tmp_path / "g.fir").module  # upgraded again
    assert _versions(manifest)["my.soft.default"] == 3
    down = upgrades.downgrade(module, opset, lambda op: 1)
    nodes = [n for n in down.graph.nodes if n.op == "my.soft.default"]
    assert (_versions(down)["my.soft.default"], len(nodes[0].args)) == (version, arguments)
    assert (down.ops["my.soft.default"].signature == CHANGES[0].signature) == (version == 1)


def _soft(scale: float) -> Graph:
    x, y = (Value(i, TensorType(ir.DType.f32, (2,))) for i in range(2))
    return Graph("g", Kind.inference, (Input(x),), (Node("my.soft.default", (x, scale), (y,)),), (Output(y),))


@pytest.mark.usefixtures("changed")
def test_what_an_older_version_cannot_say_is_refused_by_name(tmp_path: Path) -> None:
    module = ir.module(_soft(2.0), ops={"my.soft.default": OpUse(3, "")})
    ir.write(tmp_path / "g.fir", module, opset=2)
    message = "my.soft.default cannot be written for opset 1: `my.soft.default` at an unknown line uses what is newer"
    with pytest.raises(ArgumentError, match=re.escape(message)) as caught:
        ir.write(tmp_path / "g.fir", module, opset=1)
    assert caught.value.next == "write for a newer opset, or decompose the op before"


def test_an_op_that_an_older_opset_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"my\.soft\.default cannot be written for opset 1: opset 4 is"):
        upgrades.downgrade(ir.module(_soft(2.0)), 1, lambda op: 4)


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize(("op", "known"), [("my.soft.default", 3), ("hop.cond", 1)])
def test_a_newer_version_of_a_known_op_is_refused_by_name(op: str, known: int) -> None:
    with pytest.raises(IRVersionError, match=f"it uses version 9 of {op}; this Fairlead reads up to {known}") as caught:
        parse(re.sub(rf"op {op} \d", f"op {op} 9", OLD), "old.txt")
    assert (caught.value.code, caught.value.where) == ("FL602", "old.txt")
    assert caught.value.next.startswith("pip install --upgrade fairlead")


def test_a_custom_op_has_any_version_and_keeps_it() -> None:
    assert _versions(parse(OLD.replace("my.soft.default 1", "my.soft.default 9")))["my.soft.default"] == 9


def test_the_table_of_changes_and_the_opset_agree() -> None:
    assert {s.id: s.version for s in specs().values()} == {op: upgrades.current_version(op) for op in specs()}


def test_the_table_of_ops_has_the_frozen_signatures(small_graph: Graph) -> None:
    ops: Any = ir.module(small_graph).ops
    assert ops["aten.relu.default"] == OpUse(1, "aten.relu.default(Tensor self) -> Tensor")
