"""Frozen cases: graphs and specifications of their inputs, in one versioned and hashed file.

A pack is made once for a version of the suite, by a command outside of this wheel, and never changes afterwards.
Reading one needs none of what it was made from, and torch only for the inputs of a case.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from fairlead_conformance._pack._data import Content, Drawn, Entry, Kept, Manifest, Saved, Specification
from fairlead_conformance._pack._file import Pack, digest, pack, write

if TYPE_CHECKING:
    from fairlead_conformance._pack._inputs import made, specified

__all__ = [
    "Content",
    "Drawn",
    "Entry",
    "Kept",
    "Manifest",
    "Pack",
    "Saved",
    "Specification",
    "digest",
    "made",
    "pack",
    "specified",
    "write",
]


def __getattr__(name: str) -> object:
    if name in ("made", "specified"):
        return getattr(importlib.import_module(f"{__name__}._inputs"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
