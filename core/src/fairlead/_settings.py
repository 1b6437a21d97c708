"""The environment variables of Fairlead, read at each call so that a program can change them while it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fairlead.errors import ArgumentError

BACKEND = "FAIRLEAD_BACKEND"
DISABLE = "FAIRLEAD_DISABLE"
STRICT = "FAIRLEAD_STRICT"

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


def backend() -> str | None:
    """``FAIRLEAD_BACKEND``: the backend to use where the call names none."""
    return os.environ.get(BACKEND, "").strip() or None


def disabled() -> bool:
    """``FAIRLEAD_DISABLE``: run every program as it is, in eager mode."""
    return _flag(DISABLE)


def strict() -> bool:
    """``FAIRLEAD_STRICT``: what is otherwise worked around, with a warning, is an error."""
    return _flag(STRICT)


def present() -> Mapping[str, str]:
    """The variables that are set, by name."""
    return {name: os.environ[name] for name in (BACKEND, DISABLE, STRICT) if name in os.environ}


def _flag(name: str) -> bool:
    text = os.environ.get(name, "").strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ArgumentError(
        f"{name} is neither true nor false: {os.environ[name]!r}",
        where=f"environment variable {name}",
        next=f"set {name}=1 or {name}=0, or unset it",
    )
