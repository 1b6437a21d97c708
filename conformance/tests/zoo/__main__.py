"""Run the zoo, or the mutants: ``python -m conformance.tests.zoo [mutants]``; ``make zoo`` and ``make mutants``."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import time

import torch

from conformance.tests.zoo import _score
from conformance.tests.zoo._fault import Fault
from conformance.tests.zoo._judged import killed
from conformance.tests.zoo._zoo import ZOO
from fairlead_conformance import Level

_SECONDS = 60.0


def judged(fault: Fault) -> _score.Verdict:
    at_l1 = killed(fault, Level.L1, seconds=_SECONDS)
    return _score.Verdict(fault, at_l1, at_l1 or killed(fault, Level.L3, seconds=_SECONDS))


def zoo(names: list[str]) -> int:
    """Run all backends, or those named; writes the page for all of them. Returns how many survive."""
    verdicts = []
    for number, fault in enumerate(f for f in ZOO if not names or f.name in names):
        start = time.perf_counter()
        verdict = judged(fault)
        verdicts.append(verdict)
        killer = verdict.killer
        level = "--" if killer is None else "L1" if verdict.at_l1 else "L3"
        told = "SURVIVES" if killer is None else f"{killer.status} {killer.check} {killer.id}"
        print(
            f"{number + 1:4} {level} {fault.kind:9} {fault.name}: {told} ({time.perf_counter() - start:.1f} s)",
            flush=True,
        )
    if not names:
        _score.PAGE.write_text(_score.page(verdicts))
        figures = {level: _score.figure(verdicts, level) for level in ("L1", "L3")}
        _score.write(importlib.metadata.version("fairlead-conformance"), zoo=figures)
    return sum(v.killer is None for v in verdicts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.tests.zoo", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("zoo", "mutants"), default="zoo")
    parser.add_argument("names", nargs="*", help="only these backends")
    args = parser.parse_args()
    torch.set_num_threads(1)
    return 1 if zoo(args.names) else 0


if __name__ == "__main__":
    sys.exit(main())
