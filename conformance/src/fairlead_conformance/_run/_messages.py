"""What a session and its workers say to each other: a JSON line each, on descriptors that nothing else uses.

The session sends a `Setup` and then a `Case` at a time; the worker says `Loading`, `Ready`, and `Done` for each case.
"""

from __future__ import annotations

import msgspec

from fairlead_conformance._result import Result

__all__ = ["LOST_CHANNEL", "Done", "Loading", "Message", "Ready", "Setup"]

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


class Loading(msgspec.Struct, frozen=True, tag="loading"):
    """The families and torch are there; from here on the backend's code runs, and what happens is its doing."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The backend was imported and probed, or refused with an error that each case will show.

    ``versions`` are those of its SDKs, as its probe says.
    """

    versions: dict[str, str] = {}


class Done(msgspec.Struct, frozen=True, tag="done"):
    """A case was run. ``lost``: the worker can use the device no more, and ends."""

    result: Result
    lost: bool = False


Message = Loading | Ready | Done
