"""What came of a promise on a backend."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Outcome", "State"]


class State(enum.StrEnum):
    """Right results in all but `fails` and `not_run`; the states differ in who computed them."""

    works = "works"
    in_part = "in part"
    declined = "declined"
    not_run = "not run here"
    fails = "fails"


class Outcome(msgspec.Struct, frozen=True):
    """``reasons``: what the backend, or torch, gave for what it did not take; none where the promise works."""

    state: State
    reasons: tuple[str, ...] = ()
