"""Run the zoo, or the mutants: ``python -m conformance.tests.zoo [mutants]``; ``make zoo`` and ``make mutants``."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import time

import torch

from conformance.tests.zoo import _changes, _mutants, _score
from conformance.tests.zoo._fault import Fault
from conformance.tests.zoo._judged import killed
from conformance.tests.zoo._zoo import ZOO
from fairlead_conformance import Level
from fairlead_conformance._report import Figure

_SECONDS = 20.0
_LOG = _score.ROOT / "build/mutants.tsv"


def judged(fault: Fault) -> _score.Verdict:
    at_l1 = killed(fault, Level.L1, seconds=_SECONDS)
    return _score.Verdict(fault, at_l1, at_l1 or killed(fault, fault.level, seconds=_SECONDS))


def zoo(names: list[str], new: bool) -> int:
    """Run all backends, or those named; writes the page for all of them. Returns how many survive.

    ``new``: only those that the page has not; it keeps what it says of the others.
    """
    kept = {verdict.fault.name: verdict for verdict in _score.read(ZOO)} if new else {}
    verdicts = []
    for number, fault in enumerate(f for f in ZOO if f.name not in kept and (not names or f.name in names)):
        start = time.perf_counter()
        verdict = judged(fault)
        verdicts.append(verdict)
        killer = verdict.killer
        level = verdict.level or "--"
        told = "SURVIVES" if killer is None else f"{killer.status} {killer.check} {killer.id}"
        print(
            f"{number + 1:4} {level} {fault.kind:9} {fault.name}: {told} ({time.perf_counter() - start:.1f} s)",
            flush=True,
        )
    survivors = sum(v.killer is None for v in verdicts)
    if not names:
        fresh = {verdict.fault.name: verdict for verdict in verdicts}
        verdicts = [(kept | fresh)[fault.name] for fault in ZOO]
        _score.PAGE.write_text(_score.page(verdicts))
        figures = {level: _score.figure(verdicts, level) for level in _score.LEVELS}
        _score.write(importlib.metadata.version("fairlead-conformance"), zoo=figures)
    return survivors


def mutants(count: int, seconds: float, shard: str) -> int:
    """Judge mutants, going on where the log ends; writes the page of all that the log has. Returns 0."""
    part, parts = map(int, shard.split("/"))
    wanted = _mutants.sample(count)
    _mutants.run(wanted[part - 1 :: parts], _LOG, seconds)
    names = {mutant.name for mutant in wanted}
    found = {name: told for name, told in _mutants.read(_LOG).items() if name in names}
    alive = sorted(name for name, told in found.items() if told == _mutants.SURVIVES)
    killed = Figure(part=len(found) - len(alive), whole=len(found))
    same = [(_changes.SAME[rule], count) for rule, count in sorted(_mutants.same().items())]
    _score.MUTANTS.write_text(_score.mutants_page(killed, alive, same))
    _score.write(importlib.metadata.version("fairlead-conformance"), mutants=killed)
    print(f"killed {killed.part} of {killed.whole} ({killed:.1%})")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.tests.zoo", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("zoo", "mutants"), default="zoo")
    parser.add_argument("names", nargs="*", help="only these backends")
    parser.add_argument("--new", action="store_true", help="only backends that the page has not yet")
    parser.add_argument("--count", type=int, default=600, help="how many mutants")
    parser.add_argument("--seconds", type=float, default=3600, help="how long mutants are judged")
    parser.add_argument("--shard", default="1/1", help="one part of the mutants, as 1/4")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.what == "mutants":
        return mutants(args.count, args.seconds, args.shard)
    return 1 if zoo(args.names, args.new) else 0


if __name__ == "__main__":
    sys.exit(main())
