"""What is kept of one case that was run: a line of a worker's log, and a row of the report."""

from __future__ import annotations

import msgspec

from fairlead_conformance._status import Status

__all__ = ["Result"]


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of one case. ``detail`` is one line for people; ``check`` names the check that failed.

    ``native`` are the ops that the backend ran itself, ``extern`` the torch kernels that it borrowed, ``declined`` the
    reason for each op that it refused. ``compared`` counts elements that were compared. ``seconds`` is wall time.
    ``output`` is the end of what was printed meanwhile, kept where the case did not pass.
    """

    id: str
    status: Status
    detail: str = ""
    check: str = ""
    native: tuple[str, ...] = ()
    extern: tuple[str, ...] = ()
    declined: dict[str, str] = {}
    compared: int = 0
    seconds: float = 0.0
    output: str = ""
