"""``python -m tests.matrix.hashes [FOLDER]``: whether this Python finds the hashes that a corpus is filed under.

Needs Fairlead and msgspec alone, so that any Python can be asked.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from fairlead.ir import Graph, fingerprint, read

__all__ = ["name_of"]

FOLDER = Path(__file__).parent / "corpus"


def name_of(graphs: Iterable[Graph]) -> str:
    """What a file with these graphs is called: the start of a hash of their fingerprints."""
    return hashlib.sha256(" ".join(map(fingerprint, graphs)).encode()).hexdigest()[:16]


def main(folder: str = str(FOLDER)) -> int:
    """Print how many files have their hash, and which have not; how many those are."""
    paths = sorted(Path(folder).glob("*.fir"))
    wrong = [path.name for path in paths if name_of(read(path).module.graphs) != path.stem]
    print(
        f"Python {platform.python_version()}: {len(paths) - len(wrong)} of {len(paths)} files have their hash", *wrong
    )
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
