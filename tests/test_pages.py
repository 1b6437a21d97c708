"""The pages of HTML that commands write: readable on a phone, on a screen and in the dark, and silent."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import torch

import fairlead
from conformance.tests.report.fixtures import report
from conformance.tests.report.test_scoreboard import backends, page
from core.tests.page.test_page import network
from fairlead import ir
from fairlead._compare import Report, to_html
from fairlead._page import page as graph_page
from fairlead_conformance import Status

from .browser import BROWSER, PHONE, SCREEN, look
from .conftest import REPOSITORY


class Broken(torch.nn.Module):
    """A break of the graph, with hints; and what a backend declines."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        torch._dynamo.graph_break()
        return torch.lgamma(x).abs()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What `explain`, `compare`, `show` and the conformance suite write."""
    folder = tmp_path_factory.mktemp("pages")
    found = fairlead.explain(Broken(), backend="onnxrt")(torch.randn(2, 8))
    (folder / "explain.html").write_text(found.to_html(), "utf-8")
    measured = json.loads((REPOSITORY / "docs/results/compare-cpu.json").read_text("utf-8"))["report"]
    compared = msgspec.convert(measured, Report)
    some = tuple(c for c in compared.comparisons if c.model in ("resnet50", "t5"))  # t5: a long reason without a space
    (folder / "compare.html").write_text(to_html(msgspec.structs.replace(compared, comparisons=some)), "utf-8")
    graph = network(120)
    (folder / "graph.html").write_text(graph_page("net.fir", ir.module(graph), [graph], "eager"), "utf-8")
    reports = [*backends(), report([Status.PASS_NATIVE, Status.FAIL_MISMATCH] * 4)]
    page(folder / "scoreboard", reports)
    return sorted(folder.rglob("*.html"))


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize(("width", "dark"), [(PHONE, True), (PHONE, False), (SCREEN, True)])
def test_pages_of_commands_are_readable(pages: list[Path], tmp_path: Path, width: int, dark: bool) -> None:
    looks, console = look(pages, tmp_path, width, dark=dark)
    assert console == []
    assert len(looks) == len(pages) >= 7
    for found in looks:
        assert found.overflow == 0, found
        assert found.contrast >= 4.5, found
        assert (found.luminance < 0.1) is dark, found
