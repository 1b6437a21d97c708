"""The commands that read reports: what they print, and their exit status."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from fairlead.errors import ArgumentError
from fairlead_conformance import Level
from fairlead_conformance._cli.app import app
from fairlead_conformance._report import headline, published, write_report

from .fixtures import of_suite


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_a_valid_report_is_said_to_be_in_one_line(tmp_path: Path) -> None:
    write_report(of_suite(), tmp_path)
    for path in (tmp_path, tmp_path / "report.json"):
        found = command("verify", str(path))
        assert found.exit_code == 0
        assert found.output == f"valid: {headline(of_suite())}\n"


def test_what_is_wrong_with_an_edited_report_is_said_in_a_line_each(tmp_path: Path) -> None:
    write_report(replace(of_suite(), claim=Level.L4), tmp_path)
    found = command("verify", str(tmp_path))
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        "digest: changed after it was written: its digest is another",
        "claim: L4 is claimed, the results support L1",
    ]


def test_a_report_that_is_none_is_an_error_of_three_lines(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        CliRunner().invoke(app, ["verify", str(tmp_path)], catch_exceptions=False)
    assert caught.value.where == str(tmp_path / "report.json")


def test_the_schema_is_printed_as_it_is_published() -> None:
    assert command("schema").output == published()
