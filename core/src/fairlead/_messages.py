"""Pieces that the three-line messages of `fairlead.errors` are made of."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 300


def cause(error: BaseException) -> str:
    """What foreign code raised, in one line: the type and the first line of its message.

    >>> cause(ValueError("no such device\\n  at frame 3"))
    'ValueError: no such device'
    """
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of ``words`` that ``word`` was probably meant to be, if any.

    >>> nearest("openvin", ["eager", "openvino"])
    'openvino'
    """
    by_lower = {w.lower(): w for w in words}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def listed(words: Iterable[str]) -> str:
    """The words as a list that a person reads; ``none`` where there are none."""
    return ", ".join(words) or "none"
