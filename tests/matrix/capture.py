"""``python -m tests.matrix.capture FOLDER [START]``: capture the programs with the torch that is here into a corpus.

START is how the names of the programs start that are wanted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from tests.matrix import _corpus
from tests.matrix._capture import capture_program
from tests.matrix._programs import models, ops


def main(folder: str, start: str = "") -> None:
    release = ".".join(torch.__version__.split(".")[:2])
    Path(folder).mkdir(parents=True, exist_ok=True)
    index = _corpus.load(Path(folder))
    for programs in (models, ops):
        for program in programs(start):
            _corpus.store(Path(folder), index, release, program.name, capture_program(program))
    _corpus.save(Path(folder), index)


if __name__ == "__main__":
    main(*sys.argv[1:])
