"""Mutants are made as they are told, and the suite kills a sample of them."""

from __future__ import annotations

import pytest

from conformance.tests.zoo import _mutants

pytestmark = pytest.mark.filterwarnings("ignore")


def test_there_are_enough_of_them() -> None:
    assert len(_mutants.mutants()) >= 500


def test_a_mutant_has_other_rules_for_its_ops_alone() -> None:
    mutant = next(m for m in _mutants.mutants() if m.function == "_sub" and m.change == "Sub became Add")
    before = dict(_mutants._table._RULES)
    changed = _mutants.rules_of(mutant)
    assert mutant.ops == ("aten.sub.Tensor",) == tuple(changed)
    assert before == _mutants._table._RULES
    assert changed["aten.sub.Tensor"] is not before["aten.sub.Tensor"]


def test_most_of_a_sample_are_killed() -> None:
    sample = _mutants.sample(10, seed=1)
    killed = [_mutants.judged(mutant) is not None for mutant in sample]
    assert sum(killed) >= 6
