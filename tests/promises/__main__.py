"""``python -m tests.promises``: hold every promise to every backend, and write down what came of it."""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from pathlib import Path

from tests.promises._catalogue import BACKENDS
from tests.promises._hold import PROMISES, hold
from tests.promises._outcome import Outcome, State
from tests.promises._page import PAGE, page


def main() -> None:
    options = _options()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], Outcome] = {}
    for backend in BACKENDS:
        for promise in PROMISES:
            try:
                found[promise.name, backend] = hold(promise, backend, options.device)
            except Exception as error:
                first = (str(error).splitlines() or [""])[0]
                found[promise.name, backend] = Outcome(State.fails, (f"{type(error).__name__}: {first}",))
                print(f"{promise.name} on {backend}: {error!r}", file=sys.stderr)
        print(backend, file=sys.stderr, flush=True)
    options.out.write_text(page(found, BACKENDS, options.device), "utf-8")
    if any(outcome.state is State.fails for outcome in found.values()):
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.promises", description=(__doc__ or "").partition(":")[2])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where tensors are")
    parser.add_argument("--out", type=Path, default=Path(PAGE), help="the page to write; the committed one by default")
    return parser.parse_args()


if __name__ == "__main__":
    main()
