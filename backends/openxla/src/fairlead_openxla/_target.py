"""For what rules write, a kind of device and a precision, in one thread and for as long as a graph is lowered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from jax import lax

__all__ = ["on_cpu", "precision", "writing_for"]

_TARGET = ContextVar("fairlead_openxla_target", default=("cpu", False))


def on_cpu() -> bool:
    """Whether what is written is for a CPU: what is fast there is slow elsewhere, and what is wrong ends otherwise."""
    return _TARGET.get()[0] == "cpu"


def precision() -> lax.Precision:
    """In how many bits products and convolutions of float32 are computed; XLA's default is TF32 on CUDA."""
    return lax.Precision.DEFAULT if _TARGET.get() == ("cuda", True) else lax.Precision.HIGHEST


@contextlib.contextmanager
def writing_for(kind: str, *, tf32: bool = False) -> Iterator[None]:
    """Within, rules write for devices of this type, with TF32 where that is accepted and there is any.

    >>> with writing_for("cuda"):
    ...     on_cpu()
    False
    """
    before = _TARGET.set((kind, tf32))
    try:
        yield
    finally:
        _TARGET.reset(before)
