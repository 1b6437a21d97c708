"""What a session and its workers say to each other: a JSON line each, on descriptors that nothing else uses.

The session sends a `Setup` and then a `Bundle` at a time; the worker says `Loading`, `Ready`, and `Done` for each
bundle.
"""

from __future__ import annotations

import msgspec

from fairlead_conformance._case import Case
from fairlead_conformance._result import Result

__all__ = ["LOST_CHANNEL", "Bundle", "Done", "Loading", "Message", "Ready", "Setup"]

LOST_CHANNEL = 74
"""Exit status of a worker that can no longer speak: the backend closed its descriptors."""


class Setup(msgspec.Struct, frozen=True):
    """The subject of all cases that follow, and the families that the first of them are of.

    ``memory``: bytes of the device's memory that the worker may take; 0 for any number.
    """

    backend: str
    seed: int
    device: str
    memory: int = 0
    families: tuple[str, ...] = ()


class Bundle(msgspec.Struct, frozen=True):
    """What to do next: one case, or several that are to be judged as one graph."""

    cases: tuple[Case, ...]


class Loading(msgspec.Struct, frozen=True, tag="loading"):
    """The families and torch are there; from here on the backend's code runs, and what happens is its doing."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The backend was imported and probed, or refused with an error that each case will show.

    ``versions`` are those of its SDKs, as its probe says.
    """

    versions: dict[str, str] = {}


class Done(msgspec.Struct, frozen=True, tag="done"):
    """What came out: of one case its result, of several those that passed as one graph; of the others nothing is known.

    ``lost``: the worker can use the device no more, and ends.
    """

    results: tuple[Result, ...]
    lost: bool = False


Message = Loading | Ready | Done
