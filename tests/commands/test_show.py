"""``fairlead show``: text on stdout, or a page in a file."""

from __future__ import annotations

from pathlib import Path

from fairlead import ir

from .conftest import Command, error, small


def test_the_text_of_a_file_is_what_the_ir_prints(command: Command, file: Path) -> None:
    result = command("show", file.name)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.rstrip() == ir.to_text(ir.read(file).module)


def test_one_graph_with_its_source_lines(command: Command, file: Path) -> None:
    result = command("show", file.name, "--graph", "0", "--locations")
    assert result.stdout.rstrip() == ir.to_text(small(), locations=True)
    assert "/home/ann/model.py" in result.stdout


def test_a_page_is_one_file(command: Command, file: Path, tmp_path: Path) -> None:
    result = command("show", file.name, "--html", "page.html", "--backend", "eager")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "page.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert result.stdout == f"page.html: 1 graph, 2 nodes, {len(text.encode()):,} bytes\n"


def test_a_backend_without_a_page_colours_nothing(command: Command, file: Path) -> None:
    assert error(command("show", file.name, "--backend", "eager")) == "FL203: --backend colours the page"


def test_an_unknown_backend_is_found_out_before_the_page_is_made(command: Command, file: Path, tmp_path: Path) -> None:
    result = command("show", file.name, "--html", "page.html", "--backend", "eagr")
    assert error(result) == "FL101: no backend is called 'eagr'"
    assert not (tmp_path / "page.html").exists()


def test_a_page_in_a_folder_that_is_not_there_is_refused(command: Command, file: Path) -> None:
    assert error(command("show", file.name, "--html", "no/page.html")) == "FL203: no/page.html cannot be written"
