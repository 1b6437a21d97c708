"""The commands that read reports: what they print, and their exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from fairlead.errors import ArgumentError
from fairlead_conformance import Level, manifest
from fairlead_conformance._cli.app import app
from fairlead_conformance._report import Run, Shard, headline, published, read_report, report_of, write_report

from .fixtures import of_suite, run


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


def sharded(index: int) -> Run:
    return replace(run(Level.L1), shards=(Shard(index=index, of=2),))


def shards(folder: Path) -> list[str]:
    """Two shards of a run over the suite's own cases, each with every second one."""
    for index in (1, 2):
        whole = of_suite()
        own = [r for i, r in enumerate(whole.results) if i % 2 == index - 1]
        part = report_of(manifest(Level.L1), own, backend=whole.backend, machine=whole.machine, run=sharded(index))
        write_report(part, folder / str(index))
    return [str(folder / "1"), str(folder / "2")]


def test_shards_are_merged_into_a_report_that_verifies(tmp_path: Path) -> None:
    found = command("merge", *shards(tmp_path), "-o", str(tmp_path / "whole"))
    assert found.exit_code == 0
    assert found.output.startswith(f"{tmp_path / 'whole/report.json'}: able: L1, 100.0% correct")
    assert command("verify", str(tmp_path / "whole")).exit_code == 0


def test_a_shard_that_does_not_verify_is_not_merged(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    write_report(replace(read_report(tmp_path / "2/report.json"), digest=""), tmp_path / "2")
    found = command("merge", *paths, "-o", str(tmp_path / "whole"))
    assert str(found.exception).startswith("FL203: a report that cannot be trusted: digest: ")
    assert not (tmp_path / "whole").exists()


def test_what_broke_between_two_runs_is_said_and_is_exit_status_1(tmp_path: Path) -> None:
    (case, *_) = manifest(Level.L1)
    write_report(of_suite(), tmp_path / "a")
    write_report(of_suite(failing=[case.id]), tmp_path / "b")
    worse = command("diff", str(tmp_path / "a"), str(tmp_path / "b"))
    assert worse.exit_code == 1
    assert worse.output.splitlines() == [
        "",
        "broken: 1",
        f"  {case.id}  PASS_NATIVE -> FAIL_STRIDE  output 0: 3 of 16 elements differ",
    ]
    better = command("diff", str(tmp_path / "b"), str(tmp_path / "a"), "--json")
    assert better.exit_code == 0
    assert [d["change"] for d in json.loads(better.output)["differences"]] == ["fixed"]
    same = command("diff", str(tmp_path / "a"), str(tmp_path / "a"))
    assert (same.exit_code, same.output) == (0, "no case has another status\n")


def test_a_badge_is_drawn_of_a_report_that_verifies(tmp_path: Path) -> None:
    write_report(of_suite(), tmp_path)
    assert command("badge", str(tmp_path), "-o", str(tmp_path / "badge.svg")).exit_code == 0
    assert (tmp_path / "badge.svg").read_text().startswith("<svg ")
    write_report(replace(of_suite(), claim=Level.L4), tmp_path)
    assert "cannot be trusted" in str(command("badge", str(tmp_path)).exception)
