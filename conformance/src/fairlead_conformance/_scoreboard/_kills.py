"""How good the suite itself is: how many faulty backends, and mutants of the reference, it catches."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairlead.errors import ArgumentError
from fairlead_conformance._report import Figure

__all__ = ["KillScore", "read_kills"]


class KillScore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the suite's own tests measured, of its version ``suite``.

    ``zoo``: faulty backends caught, of all, by the level that was run. ``mutants``: automatic mutants of the reference
    interpreter caught, of all.

    >>> KillScore(suite="1.0.0", zoo={"L1": Figure(part=80, whole=120)}, mutants=Figure(part=470, whole=512)).suite
    '1.0.0'
    """

    suite: str
    zoo: dict[str, Figure]
    mutants: Figure


def read_kills(path: Path) -> KillScore:
    """The score of a file. Raises `fairlead.errors.ArgumentError` where it is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=KillScore)
    except (OSError, msgspec.DecodeError) as error:
        raise ArgumentError(
            f"not a kill score: {error}",
            where=str(path),
            next="give the file that the tests of the suite write, or leave the option out",
        ) from error
