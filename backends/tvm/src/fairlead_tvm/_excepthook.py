"""What a process does with exceptions that nobody catches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

__all__ = ["excepthook_kept"]


@contextlib.contextmanager
def excepthook_kept() -> Iterator[None]:
    """Leave it as it was: importing TVM replaces it, by a hook that ends the children of the process."""
    before = sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = before
