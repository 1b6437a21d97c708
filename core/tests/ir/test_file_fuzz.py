"""A sample of what ``python benchmarks/fuzz.py`` does a hundred thousand times, under a limit of memory."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest

from fairlead.errors import IRError
from fairlead.ir import Graph, Kind, Node, read, verify

from .hostile import FORMS, cases, originals

COUNT = 1400


def test_hostile_input_is_an_error_or_harmless(tmp_path: Path) -> None:
    outcomes: collections.Counter[tuple[str, bool]] = collections.Counter()
    messages: set[str] = set()
    for case in cases(COUNT, 1, tmp_path / "case.fir"):
        try:
            case.read()
        except IRError as error:
            outcomes[case.form, False] += 1
            messages.add(str(error))
        else:
            outcomes[case.form, True] += 1
    assert [m for m in messages if m.count("\n") != 2] == []
    assert {form for form, _ in outcomes} == set(FORMS)
    assert all(outcomes[form, False] > COUNT / len(FORMS) / 2 for form in FORMS)
    assert sum(outcomes[form, True] for form in FORMS) > COUNT / 50


@pytest.mark.parametrize("number", [0, 1, -1])
def test_the_undamaged_file_survives(tmp_path: Path, number: int) -> None:
    (tmp_path / "g.fir").write_bytes(originals()[number].file)
    assert read(tmp_path / "g.fir").module.graphs


def test_a_region_that_holds_itself_cannot_be_made() -> None:
    """Graphs are frozen; what is deepest is what the verifier refuses."""
    graph = Graph("g", Kind.region, (), (), ())
    for _ in range(9):
        graph = Graph("g", Kind.region, (), (Node("a.b", (), (), None, (graph,)),), ())
    with pytest.raises(IRError, match="nested more than 8 deep"):
        verify(graph)
    with pytest.raises(AttributeError):
        graph.nodes[0].regions[0].nodes = graph.nodes  # type: ignore[misc]
