"""The scoreboard: every backend with its own figures, and nothing that a name or a missing number could break."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from fairlead.errors import ArgumentError
from fairlead_conformance import Level, Status
from fairlead_conformance._cli.app import app
from fairlead_conformance._report import Figure, Report, Suite, digest, read_report, write_report
from fairlead_conformance._scoreboard import KillScore, read_kills, write_site

from .browser import BROWSER, Reader, browsed
from .fixtures import KNOWN, STATUSES, of_suite, report

KILLS = KillScore(
    suite="0.1.0",
    zoo={"L1": Figure(part=81, whole=126), "L3": Figure(part=126, whole=126)},
    mutants=Figure(part=478, whole=512),
)


def named(name: str, found: Report, device: str = "cpu") -> Report:
    return replace(found, backend=replace(found.backend, name=name), run=replace(found.run, device=device))


def backends() -> list[Report]:
    """Three, the worst first."""
    failing = [*STATUSES[:2], Status.FAIL_STRIDE, *STATUSES[3:]]
    return [
        named("halyard", report(STATUSES[:5])),
        named("bollard", report(failing)),
        named("winch", report(STATUSES)),
    ]


def page(folder: Path, reports: Sequence[Report], kills: KillScore | None = KILLS) -> str:
    return write_site([(one, "") for one in reports], folder, kills).read_text("utf-8")


def order(text: str, *names: str) -> list[str]:
    return sorted(names, key=lambda name: text.index(f">{name}<"))


def test_the_site_has_a_page_a_report_and_a_badge_of_each_backend(tmp_path: Path) -> None:
    text = page(tmp_path / "site", backends())
    files = {path.name for path in (tmp_path / "site").iterdir()}
    assert files == {
        "index.html",
        *(f"{name}-cpu.{form}" for name in ("halyard", "bollard", "winch") for form in ("html", "json")),
        "bollard-cpu.svg",
        "winch-cpu.svg",
    }
    local = {reference.partition("=")[2] for reference in Reader(text).references} - {KNOWN.issue}
    assert local == {name for name in files if name.endswith((".html", ".json"))} - {"index.html"}
    assert read_report(tmp_path / "site/winch-cpu.json") == backends()[2]


def test_the_best_is_first_and_each_has_its_own_figures(tmp_path: Path) -> None:
    text = page(tmp_path, backends())
    assert order(text, "winch", "bollard", "halyard") == ["winch", "bollard", "halyard"]
    entries = text.split('<li class="card entry">')[1:]
    figures = [("85.7%", "85.7%"), ("71.4%", "71.4%"), ("80.0%", "57.1%")]
    for entry, (correct, coverage) in zip(entries, figures, strict=True):
        assert f'>{correct}</div><div class="unit">correct' in entry
        assert f'>{coverage}</div><div class="unit">coverage' in entry
    assert entries[0].count('class="reached"') == 4
    assert entries[1].count('class="reached"') == 1
    assert "incomplete: 2 of 7 cases were not run" in entries[2]
    assert entries[2].count('class="reached"') == 0
    assert "1 known failure, the oldest 30 days old" in entries[0]


def test_one_backend_on_two_devices_and_two_of_one_name_have_their_own_files(tmp_path: Path) -> None:
    text = page(tmp_path, [named("winch", report(), "cuda"), named("winch", report()), named("Winch", report())])
    assert {path.name for path in tmp_path.glob("*.html")} == {
        "index.html",
        "winch-cpu.html",
        "winch-cpu-2.html",
        "winch-cuda.html",
    }
    assert ">winch on cuda<" in text


def test_a_name_cannot_leave_the_directory(tmp_path: Path) -> None:
    page(tmp_path / "a/site", [named("../../evil", report())])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a/site/evil-cpu.html").exists()


def test_the_kill_score_is_shown_or_said_to_be_missing(tmp_path: Path) -> None:
    given = page(tmp_path, backends())
    assert "81 of 126" in given
    assert ">93%<" in given
    assert "was not given to this page" in page(tmp_path, backends(), None)


def test_a_kill_score_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kills.json"
    path.write_text('{"suite": "1", "zoo": {}, "killed": 3}')
    with pytest.raises(ArgumentError) as caught:
        read_kills(path)
    assert caught.value.what == "not a kill score: Object contains unknown field `killed`"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    found = named(evil, report(known=[replace(KNOWN, reason=evil, issue="javascript:alert(1)")]))
    reader = Reader(page(tmp_path, [found]))
    assert "script" not in reader.texts
    assert [reference for reference in reader.references if "javascript" in reference] == []


def command(*arguments: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return found.exit_code, str(found.exception or found.output)


def test_the_command_writes_the_site_of_reports_that_verify(tmp_path: Path) -> None:
    write_report(of_suite(), tmp_path / "able")
    assert command("scoreboard", tmp_path / "able", "-o", tmp_path / "site") == (0, f"{tmp_path}/site/index.html\n")


def test_a_report_of_another_suite_is_marked_and_an_edited_one_refused(tmp_path: Path) -> None:
    old = replace(of_suite(), suite=Suite(version="0.0.1", sha256="0" * 64))
    write_report(replace(old, digest=digest(old)), tmp_path / "old")
    code, _ = command("scoreboard", tmp_path / "old", "-o", tmp_path / "site")
    assert code == 0
    assert "unverified: made by version 0.0.1 of the suite" in (tmp_path / "site/index.html").read_text("utf-8")
    write_report(old, tmp_path / "old")
    code, message = command("scoreboard", tmp_path / "old", "-o", tmp_path / "site")
    assert code == 1
    assert "cannot be trusted: digest" in message
    write_report(replace(of_suite(), claim=Level.L4), tmp_path / "edited")
    assert "cannot be trusted: digest" in command("scoreboard", tmp_path / "edited", "-o", tmp_path / "site")[1]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_the_board_without_overflow(tmp_path: Path, width: int) -> None:
    wide = named("a-" + "long-name" * 6, report([*STATUSES[:2], Status.NOT_RUN, *STATUSES[3:]]))
    text = page(tmp_path / "site", [*backends(), wide, *(named(f"b{i}", report()) for i in range(9))])
    steps = """
      const seen = (selector) => [...document.querySelectorAll(selector)].map((e) => e.getBoundingClientRect());
      root.dataset.entries = seen(".entry").length;
      root.dataset.hidden = seen(".entry .value, .entry .bar, .entry .ladder").filter((r) => r.width < 20).length;
      root.dataset.outside = seen(".entry *").filter((r) => r.right > root.clientWidth + .5).length;
      root.dataset.cells = seen("details[open] .heat td[title]").filter((r) => r.width > 15).length;
    """
    found = browsed(text, tmp_path, width, steps)
    assert found == {
        "width": str(width),
        "overflow": "0",
        "entries": "13",
        "hidden": "0",
        "outside": "0",
        "cells": "4",
    }
