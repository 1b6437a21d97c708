"""How many faulty backends were caught, as a page and as the figures that the scoreboard shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from conformance.tests.zoo._fault import Fault
from fairlead_conformance import Result, Status
from fairlead_conformance._report import Figure
from fairlead_conformance._scoreboard import KillScore

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/results/zoo.md"
MUTANTS = ROOT / "docs/results/mutants.md"
FIGURES = ROOT / "docs/results/zoo.json"
LEVELS = ("L1", "L3", "L4")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a fault: the first failure at L1, and at its own level where there was none."""

    fault: Fault
    at_l1: Result | None
    later: Result | None

    @property
    def killer(self) -> Result | None:
        return self.at_l1 or self.later

    @property
    def level(self) -> str:
        """The level at which it dies; empty where it survives."""
        return "L1" if self.at_l1 else self.fault.level.name if self.later else ""


def page(verdicts: Sequence[Verdict]) -> str:
    """The score as Markdown."""
    first, third, fourth = (figure(verdicts, level) for level in LEVELS)
    lines = [
        "# The zoo of faulty backends",
        "",
        "Made by `make zoo`: each backend is wrong in one thing, and runs the cases in which that is to show until one",
        "fails that an honest backend of the same capabilities passes. With `--new` only backends that this page has",
        "not are run: what it says of others is of the run that judged them.",
        "",
        f"**Killed at L1: {first.part} of {first.whole} ({first:.0%}). "
        f"At L3: {third.part} of {third.whole} ({third:.0%}). At L4: {fourth.part} of {fourth.whole} ({fourth:.0%}).**",
        "",
        "What shows only after many calls, in threads, or beside other programs is looked for at L4 alone: it is not",
        "among the backends of L1 and L3.",
        "",
        *_table("By kind", ("kind", "backends", *LEVELS), _by_kind(verdicts)),
        *_table("By check", ("check", "backends that it catches first"), _by_check(verdicts)),
        *_table(
            "Survivors", ("backend", "what is wrong"), [(v.fault.name, v.fault.wrong) for v in verdicts if not v.killer]
        ),
    ]
    for kind in dict.fromkeys(v.fault.kind for v in verdicts):
        rows = [_row(v) for v in verdicts if v.fault.kind == kind]
        lines += _table(kind.capitalize(), ("backend", "what is wrong", "level", "caught by", "in"), rows)
    return "\n".join(lines).rstrip() + "\n"


def read(faults: Sequence[Fault]) -> list[Verdict]:
    """What the page says of those of these faults that died, by the same kind, name and description."""
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    kind = ""
    for line in PAGE.read_text("utf-8").splitlines() if PAGE.exists() else ():
        kind = line.removeprefix("## ").lower() if line.startswith("## ") else kind
        cells = tuple(line.strip("| ").split(" | "))
        if len(cells) == 5:
            rows[kind, *cells[:2]] = cells[2:]
    found = ((fault, rows.get((fault.kind, _name(fault), fault.wrong))) for fault in faults)
    return [_said(fault, *row) for fault, row in found if row]


def _said(fault: Fault, level: str, caught: str, case: str) -> Verdict:
    status, _, check = caught.partition(", ")
    result = Result(id=case.strip("`"), status=Status(status), check=check)
    return Verdict(fault, result if level == "L1" else None, result)


def _name(fault: Fault) -> str:
    return fault.name.replace("_", " ")


def _row(verdict: Verdict) -> tuple[str, ...]:
    killer = verdict.killer
    told = ("", "survives", "") if killer is None else (
        verdict.level, f"{killer.status}, {killer.check}", f"`{killer.id}`",
    )  # fmt: skip
    return _name(verdict.fault), verdict.fault.wrong, *told


def _by_kind(verdicts: Sequence[Verdict]) -> list[tuple[object, ...]]:
    found = []
    for kind in dict.fromkeys(v.fault.kind for v in verdicts):
        own = [v for v in verdicts if v.fault.kind == kind]
        found.append((kind, len(own), *(figure(own, level).part for level in LEVELS)))
    return found


def _by_check(verdicts: Sequence[Verdict]) -> list[tuple[object, ...]]:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        if killer := verdict.killer:
            name = f"{killer.status}, {killer.check}"
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    if not lines:
        return [f"## {title}", "", "None.", ""]
    return [f"## {title}", "", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *lines, ""]


def mutants_page(killed: Figure, alive: Sequence[str], same: Sequence[tuple[str, int]]) -> str:
    """The mutants that survive, as Markdown. ``same``: why changes are no mutants, and of how many that is true."""
    lines = [
        "# Mutants of the reference interpreter",
        "",
        "Made by `make mutants`: one operator, constant, flag or call of one rule is changed at a time, and runs cases",
        "of the rule's ops, one of each op in turn, at most 120 and for at most four seconds of the processor's time,",
        "until one fails. What means the same as the original without a rule below telling so survives: the share is a",
        "lower bound. Which mutants are judged is drawn anew where the reference, or what can be changed, is another.",
        "",
        f"**Killed: {killed.part} of {killed.whole} ({killed:.1%}).**",
        "",
        *_table("Changes that are no mutants", ("because they provably mean the same", "changes"), same),
        *_table("Survivors", ("where and what",), [(f"`{name}`",) for name in alive]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def figure(verdicts: Sequence[Verdict], level: str) -> Figure:
    """How many are killed by the cases of a level, of those that show in training at the latest, or of all at L4."""
    known = [v for v in verdicts if v.fault.level.name <= max(level, "L3")]
    return Figure(part=sum("" < v.level <= level for v in known), whole=len(known))


def write(suite: str, zoo: dict[str, Figure] | None = None, mutants: Figure | None = None) -> None:
    """Change the figures that were measured, and keep the others."""
    kept = msgspec.json.decode(FIGURES.read_bytes(), type=KillScore) if FIGURES.exists() else None
    nothing = Figure(part=0, whole=0)
    score = KillScore(
        suite=suite,
        zoo=zoo or (kept.zoo if kept else {}),
        mutants=mutants or (kept.mutants if kept else nothing),
    )
    FIGURES.write_bytes(msgspec.json.format(msgspec.json.encode(score), indent=2) + b"\n")
