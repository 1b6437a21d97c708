"""Frozen cases: graphs and specifications of their inputs, in one versioned and hashed file.

A pack is made once for a version of the suite, by a command outside of this wheel, and never changes afterwards.
Reading one needs none of what it was made from.
"""

from fairlead_conformance._pack._data import Content, Drawn, Entry, Kept, Manifest, Saved, Specification
from fairlead_conformance._pack._file import Pack, digest, pack, write
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
