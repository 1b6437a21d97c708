"""What the searching process and the one that runs the backend say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

__all__ = ["Attempt", "Attempted", "Load", "Loaded", "Request"]


class Load(msgspec.Struct, frozen=True, tag=True):
    """Load the backend, and read its options."""

    backend: str
    options: Mapping[str, Any]


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The backend is ready."""


class Attempt(msgspec.Struct, frozen=True, tag=True):
    """Compile the graph in one file with the tensors in another, and write to the third what it gives.

    ``constants`` are the inputs that are offered as constants.
    """

    graph: str
    inputs: str
    results: str
    constants: tuple[int, ...]


class Attempted(msgspec.Struct, frozen=True, tag=True):
    """The results are written."""


Request: TypeAlias = Load | Attempt
