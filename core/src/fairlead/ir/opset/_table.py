"""The table of ops, read from ``v1.txt`` when it is first asked for."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

OPSET_VERSION = 1
"""The version of the opset that this release writes."""

TIERS = ("base", "ext", "linalg", "special", "nn", "hop", "collective", "quant")
"""The tiers, in the order of the table."""


class OpSpec(msgspec.Struct, frozen=True):
    """What the table says of an op.

    ``signature`` is its frozen text, for `signature` to read. ``version`` counts changes of meaning, ``since`` is the
    version of the opset that brought this version of the op. ``comparison`` says how near two correct results are:
    exact, ties (exact, but an index may name any of equal elements), a number of units in the last place (``4 ulp``),
    accumulation (rounding grows with the number of terms), or distribution (random numbers). ``interpreters`` are
    those that run it. ``decomposition`` says what takes a composite apart: ``passes`` (`fairlead.passes.decompose`) or
    nothing.
    """

    id: str
    version: int
    signature: str
    since: int
    tier: str
    comparison: str
    decomposition: str
    interpreters: tuple[str, ...]
    meaning: str


class Tier(NamedTuple):
    """A tier and what it is for."""

    name: str
    meaning: str


def spec(op: str) -> OpSpec | None:
    """What the table says of an op; None for a custom one.

    >>> spec("aten.relu.default").signature
    'aten.relu.default(Tensor self) -> Tensor'
    >>> spec("mylib.op.default") is None
    True
    """
    return specs().get(op)


@functools.cache
def specs() -> Mapping[str, OpSpec]:
    """The whole table, by op, in its order."""
    return MappingProxyType({s.id: s for s in _read(_lines())})


@functools.cache
def tiers() -> Mapping[str, Tier]:
    """The tiers of the table, by name."""
    heads = (line[1:].partition("] ") for line in _lines() if line.startswith("["))
    return MappingProxyType({name: Tier(name, meaning) for name, _, meaning in heads})


def _lines() -> list[str]:
    text = Path(__file__).with_name("v1.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _read(lines: list[str]) -> Iterator[OpSpec]:
    tier = text = ""
    for line in lines:
        if line.startswith("["):
            tier = line[1:].partition("]")[0]
        elif not line.startswith(" "):
            text = line
        else:
            version, since, comparison, interpreters, decomposition, meaning = line.split(maxsplit=5)
            yield OpSpec(
                id=text.partition("(")[0],
                version=int(version),
                signature=text,
                since=int(since),
                tier=tier,
                comparison=comparison.replace("ulp", " ulp"),
                decomposition="" if decomposition == "-" else decomposition,
                interpreters=tuple(interpreters.split("+")),
                meaning=meaning,
            )
