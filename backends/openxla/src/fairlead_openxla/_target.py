"""For which kind of device rules write, in one thread and for as long as a graph is lowered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["on_cpu", "writing_for"]

_TARGET = ContextVar("fairlead_openxla_target", default="cpu")


def on_cpu() -> bool:
    """Whether what is written is for a CPU: what is fast there is slow elsewhere, and what is wrong ends otherwise."""
    return _TARGET.get() == "cpu"


@contextlib.contextmanager
def writing_for(kind: str) -> Iterator[None]:
    """Within, rules write for devices of this type.

    >>> with writing_for("cuda"):
    ...     on_cpu()
    False
    """
    before = _TARGET.set(kind)
    try:
        yield
    finally:
        _TARGET.reset(before)
