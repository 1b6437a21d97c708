"""``fairlead explain``: what a user reads, as text, as JSON and as a page."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Command, error


def test_a_break_is_named_with_its_line(command: Command) -> None:
    result = command("explain", "models.py:broken", "--backend", "eager")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("models.py:broken on eager: 2 graphs, ")
    assert "Graph break 1: " in result.stdout
    assert "torch._dynamo.graph_break()" in result.stdout


def test_json_and_a_page_of_a_training_step(command: Command, tmp_path: Path) -> None:
    result = command("explain", "models.py:net", "--backend", "eager", "--train", "--json", "--html", "page.html")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [g["kind"] for g in found["placement"]["graphs"]] == ["forward", "backward"]
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")


def test_an_unknown_backend_is_found_out_first(command: Command) -> None:
    result = command("explain", "models.py:net", "--backend", "eagr")
    assert error(result) == "FL101: no backend is called 'eagr'"
