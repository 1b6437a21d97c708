"""A badge says three things, and is refused to who did not run everything."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from fairlead.errors import ArgumentError
from fairlead_conformance import Level, Status
from fairlead_conformance._report import to_badge

from .fixtures import STATUSES, report


def text(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_it_says_level_and_both_figures() -> None:
    assert text(to_badge(report())) == ["fairlead conformance", "L3 · 85.7% correct · 85.7% coverage"]


def test_figures_are_never_rounded_up_to_all() -> None:
    found = report()
    assert "99.9% correct" in to_badge(replace(found, correct=replace(found.correct, part=99_999, whole=100_000)))


def test_it_names_the_looser_numbers_that_are_declared() -> None:
    found = report()
    badge = to_badge(replace(found, backend=replace(found.backend, numerics=("tf32", "<ftz>"))))
    assert text(badge)[1].endswith(" coverage · tf32 · <ftz>")


def test_no_level_is_said_to_be_none() -> None:
    assert text(to_badge(report([Status.FAIL_IMPORT, *STATUSES[1:]])))[1].startswith("no level · ")


def test_levels_have_their_own_colours() -> None:
    found = report()
    assert len({to_badge(replace(found, claim=level)).split('fill="')[2][:7] for level in (None, *Level)}) == 6


def test_a_run_that_is_not_complete_has_none() -> None:
    with pytest.raises(ArgumentError) as caught:
        to_badge(report(STATUSES[:6]))
    assert str(caught.value).splitlines()[1:] == [
        "  from: 1 of 7 cases were not run",
        "  next: run every case of the level, or merge all shards",
    ]
