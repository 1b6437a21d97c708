"""What cannot be run is refused before anything runs: what is wrong, from where, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.errors import ArgumentError, BackendNotFoundError
from fairlead_conformance import Level
from fairlead_conformance._cli.run import run
from fairlead_conformance._run import Session, Settings


def settings(backend: str = "eager", **changes: object) -> Settings:
    return Settings(**{"backend": backend, "level": Level.L0, **changes})


def lines(refusal: pytest.ExceptionInfo[Exception]) -> list[str]:
    return [line.strip() for line in str(refusal.value).splitlines()]


def test_a_backend_that_is_not_there() -> None:
    with pytest.raises(BackendNotFoundError) as refusal:
        Session(settings("nosuch"))
    what, where, next_ = lines(refusal)
    assert "no backend is called 'nosuch'" in what
    assert where.startswith("from: installed backends: ")
    assert "eager" in where
    assert "`fairlead backends` lists them" in next_


def test_an_expression_that_matches_nothing() -> None:
    with pytest.raises(ArgumentError) as refusal:
        Session(settings(expression="nosuchcase"))
    assert lines(refusal) == [
        "FL203: no case of L0 matches 'nosuchcase'",
        "from: -k",
        "next: list them without it: --collect; those of a higher level need --level",
    ]


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "report").touch()
    with pytest.raises(ArgumentError, match=r"the report cannot be kept there: .*exists") as refusal:
        Session(settings(), folder=tmp_path / "report")
    assert refusal.value.where == str(tmp_path / "report")
    assert refusal.value.next == "name a folder that you may read and write: --report FOLDER"


def test_a_log_whose_lines_are_no_results(tmp_path: Path) -> None:
    Session(settings(), folder=tmp_path).close()
    (tmp_path / "results.jsonl").write_text("{}\n")
    with pytest.raises(ArgumentError, match=r"cannot be resumed: line 1 of its results\.jsonl is no result"):
        Session(settings(), folder=tmp_path, resume=True)


def test_another_seed_than_that_of_the_run_before(tmp_path: Path) -> None:
    Session(settings(seed=1), folder=tmp_path).close()
    with pytest.raises(ArgumentError, match="cannot be resumed: its seed was 1, and is now 2"):
        Session(settings(seed=2), folder=tmp_path, resume=True)


def test_to_resume_what_is_in_no_folder() -> None:
    with pytest.raises(ArgumentError) as refusal:
        run("eager", resume=True)
    assert (refusal.value.where, refusal.value.next) == ("--resume", "add --report FOLDER")
