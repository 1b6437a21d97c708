"""The coverage page: what a backend answers for each op and dtype, and nothing that it was not asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairlead.backend import Capabilities, NoOptions, Probe, Support
from fairlead.errors import BackendNotFoundError
from fairlead.ir import DType, Node
from fairlead.registry import registry
from fairlead_conformance._cli import coverage
from fairlead_conformance._cli.app import app
from fairlead_conformance._coverage import Outcome, _gather, gather, to_html
from fairlead_conformance._pack import pack
from fairlead_conformance._subject import Subject

from .browser import BROWSER, Reader, browsed


class Picky:
    """Takes element-wise ops of floats and knows no composite."""

    name, api_version, options_type = "picky", 1, NoOptions
    capabilities = Capabilities(devices=("cpu",), dtypes=("f32", "f64", "i64"), keeps=(), training=True)

    def probe(self) -> Probe:
        return Probe(ok=True, devices=("cpu",))

    def supports(self, node: Node, /) -> Support:
        if node.op == "aten.relu.default" and node.result.tensor.dtype is not DType.f32:
            return Support.no("relu of <other> dtypes")
        return Support.yes() if node.op.startswith("aten.") else Support.no("not an op of ATen")

    def compile(self, *_: Any) -> Any:
        raise AssertionError("nothing is compiled")


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Iterator[Subject]:
    ops = ("nn.functional.relu", "nn.functional.gelu")
    few = [c.id for c in pack().cases("ops") if not c.variant and c.id.split("/")[1] in ops]
    assert {one.split("/")[1] for one in few} == set(ops)
    monkeypatch.setattr(_gather, "cases", lambda: few)
    monkeypatch.setattr(coverage, "cases", lambda: few)
    registry.register(Picky())
    yield Subject("picky")
    registry.unregister("picky")


def test_an_op_that_is_taken_is_native_and_one_that_is_not_has_its_reason(subject: Subject) -> None:
    found = gather(subject)
    relu = found.ops["aten.relu.default"]
    assert relu["f32"].counts == {Outcome.native: relu["f32"].total}
    assert relu["i64"].counts == {Outcome.declined: relu["i64"].total}
    assert relu["bf16"].reasons == {"dtype bf16": relu["bf16"].total}
    reasons = dict(found.reasons("aten.relu.default"))
    assert set(reasons["relu of <other> dtypes"].split()) == {"i64", "f64"}
    assert reasons["dtype bf16"] == "bf16"


def test_a_composite_that_core_takes_apart_is_not_native(subject: Subject) -> None:
    gelu = gather(subject).ops["aten.gelu.default"]["f32"]
    assert gelu.counts == {Outcome.decomposed: gelu.total}
    assert gelu.taken == gelu.total


def test_the_totals_are_those_of_the_ops(subject: Subject) -> None:
    found = gather(subject)
    cells = [cell for dtypes in found.ops.values() for cell in dtypes.values()]
    assert sum(cell.total for cell in cells) == sum(cell.total for cell in found.tiers.values())
    declining, samples = found.samples[1] - found.samples[0], found.samples[1]
    assert samples == len(_gather.cases())
    assert 0 < declining <= sum(cell.counts[Outcome.declined] for cell in cells)


def test_it_is_told_of_every_case(subject: Subject) -> None:
    told: list[None] = []
    gather(subject, tell=lambda: told.append(None))
    assert len(told) == len(_gather.cases())


def test_the_page_holds_reasons_as_text_and_refers_to_nothing(subject: Subject) -> None:
    page = Reader(to_html([gather(subject)], "picky 1.0"))
    assert page.references == []
    assert any("relu of <other> dtypes" in text for text in page.texts["li"])


def test_the_command_writes_a_page_and_prints_shares(subject: Subject, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["coverage", "picky", "-o", str(tmp_path / "deep" / "page.html")])
    assert done.exit_code == 0, done.output
    assert "picky" in done.output
    assert "aten.relu.default" in (tmp_path / "deep" / "page.html").read_text("utf-8")


def test_the_command_prints_json(subject: Subject) -> None:
    done = CliRunner().invoke(app, ["coverage", "picky", "--json"])
    (found,) = json.loads(done.stdout)
    assert found["ops"]["aten.gelu.default"]["f32"]["counts"].keys() == {"decomposed"}


def test_a_backend_that_is_not_there_is_refused_before_any_is_asked(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(coverage, "gather", lambda given, **_: asked.append(given.name))
    done = CliRunner().invoke(app, ["coverage", "picky", "pickier"])
    assert isinstance(done.exception, BackendNotFoundError)
    assert asked == []


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
def test_in_a_browser_the_filter_leaves_what_it_says(subject: Subject, tmp_path: Path) -> None:
    steps = """
      document.querySelector("#filter").value = "aten.relu.default";
      document.querySelector("#filter").dispatchEvent(new Event("input"));
      root.dataset.shown = document.querySelectorAll("table.ops tbody tr:not([hidden])").length;
      root.dataset.says = document.querySelector("#shown").textContent;
    """
    seen = browsed(to_html([gather(subject)], "picky 1.0"), tmp_path, 390, steps)
    assert seen["shown"] == "1"
    assert seen["says"].startswith("1 of 4")
    assert seen["overflow"] == "0"
