"""``python -m tests.matrix.differences [FOLDER]``: what differs between releases of torch in a corpus, and why."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from fairlead.ir import diff
from tests.matrix import _corpus
from tests.matrix._causes import REFERENCE, causes


def main(folder: str = str(_corpus.FOLDER)) -> None:
    for name, found in _corpus.load(Path(folder)).programs.items():
        for release, file in found.items():
            if file == found.get(REFERENCE, file):
                continue
            print(f"## {name}: torch {REFERENCE} and {release}")
            print(*(f"because {cause.text}" for cause in causes(name, release)), sep="\n")
            old, new = (_corpus.load_module(f, Path(folder)).graphs for f in (found[REFERENCE], file))
            for a, b in itertools.zip_longest(old, new):
                print(diff(a, b) if a and b else f"a graph more: {(a or b).name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
