"""Which cases a run has: each shard some, all shards all, and always the same ones."""

from __future__ import annotations

import pytest

from fairlead.errors import ArgumentError
from fairlead_conformance import Case, Level
from fairlead_conformance._run import Settings, Shard, duration, size
from fairlead_conformance._run._select import matches, select, shard

CASES = tuple(
    Case(id=f"ops/op{n}/f32/s{sample:03}", level=Level.L1, cost=0.01 * (1 + n % 7) + 3 * (n == 11))
    for n in range(40)
    for sample in range(3)
)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 200])
def test_shards_have_each_case_once_and_take_about_equally_long(count: int) -> None:
    shards = [shard(CASES, Shard(index, count)) for index in range(1, count + 1)]
    assert sorted(case.id for part in shards for case in part) == sorted(case.id for case in CASES)
    loads = [sum(case.cost for case in part) for part in shards]
    assert max(loads) - min(loads) <= max(case.cost for case in CASES)


def test_where_a_case_is_does_not_depend_on_the_order_of_the_others() -> None:
    backwards = shard(CASES[::-1], Shard(2, 3))
    assert {case.id for case in backwards} == {case.id for case in shard(CASES, Shard(2, 3))}


def test_a_shard_keeps_the_manifests_order() -> None:
    part = shard(CASES, Shard(1, 4))
    assert list(part) == [case for case in CASES if case in part]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="is no shard"):
        Shard.parse(text)


def test_an_expression_is_read_as_pytest_reads_it() -> None:
    wanted = matches("OP1 and not (s001 or s002)")
    assert [case.id for case in CASES if wanted(case.id)][:2] == ["ops/op1/f32/s000", "ops/op10/f32/s000"]


@pytest.mark.parametrize("expression", ["and", "a or", "(a", "a b", "a (b)", "(a) b", "x and a not b"])
def test_an_expression_that_is_none_is_refused(expression: str) -> None:
    with pytest.raises(ArgumentError, match="is no expression"):
        matches(expression)


def test_what_names_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match="of the family 'grahp'"):
        select(Settings(backend="any", families=("grahp",)))
    with pytest.raises(ArgumentError, match="has no case 'graph/none'"):
        select(Settings(backend="any", ids=("graph/none",)))


@pytest.mark.parametrize("text", ["5 minutes", "", "-1s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="is no duration"):
        duration(text)


def test_what_is_no_size_is_refused() -> None:
    assert size("1.5GiB") == 3 * 2**29
    with pytest.raises(ArgumentError, match="is no size"):
        size("much")
