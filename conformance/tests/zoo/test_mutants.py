"""Mutants are made as they are told, and the suite kills a sample of them."""

from __future__ import annotations

import ast

import pytest

from conformance.tests.zoo import _changes, _judged, _mutants
from fairlead_conformance import Level

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


def test_changes_that_mean_the_same_are_no_mutants() -> None:
    code = (
        "np.maximum(a, b); np.reshape(x, (-1, 2)); c = 0.0; (a - b) ** 2; abs(a - b); np.subtract(a, b); a - b;"
        "(a != b) & (a < b)"
    )
    changes = _changes.Changes()
    changes.visit(ast.parse(code))
    assert changes.same == {"symmetric": 1, "reshaped": 1, "unchanged": 1, "squared": 2, "excluded": 1}
    assert [what for _, what in changes.found].count("arguments exchanged") == 2
    assert [what for _, what in changes.found].count("operands exchanged") == 1
    assert changes.same.keys() == _changes.SAME.keys()


def test_an_order_at_a_number_that_is_ruled_out_is_no_mutant() -> None:
    changes = _changes.Changes()
    changes.visit(ast.parse("a = (x != 0) & ((y < 0) != (x < 0))"))
    assert changes.same == {"excluded": 1}
    assert sorted(what for _, what in changes.found).count("Lt became LtE") == 1


def test_defaults_and_flags_that_no_case_tells_are_left_alone() -> None:
    changes = _changes.Changes()
    changes.visit(ast.parse("class A:\n    n: int = 1\ndef f(x, n=2): return checked(x, negative=False)"))
    assert [what for _, what in changes.found] == []


def test_cases_are_taken_from_each_op_in_turn() -> None:
    first = _judged.in_turn(("aten.kthvalue.default", "aten.topk.default"), Level.L3)[:2]
    assert [case.ops for case in first] == [("aten.kthvalue.default",), ("aten.topk.default",)]
