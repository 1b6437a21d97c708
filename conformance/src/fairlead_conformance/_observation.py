"""What a family says while it runs a case: what it saw and compared, and how a case ends early."""

from __future__ import annotations

from typing import Any

from fairlead.ir import Graph
from fairlead_conformance._status import Status

__all__ = ["Declined", "Failed", "Observation"]


class Declined(Exception):
    """The backend refused, when asked, for the reasons given by op."""

    def __init__(self, reasons: dict[str, str]) -> None:
        super().__init__("; ".join(f"{op}: {reason}" for op, reason in reasons.items()))
        self.reasons = reasons


class Failed(Exception):
    """A check found the backend wrong. ``check`` is the check's name, such as ``values`` or ``first-result-kept``."""

    def __init__(self, status: Status, check: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.check = check
        self.detail = detail


class Observation:
    """What was seen while a case ran; a case that compared nothing has proved nothing."""

    def __init__(self) -> None:
        self.native: set[str] = set()
        self.extern: set[str] = set()
        self.compared = 0
        self.examined: tuple[Graph, tuple[Any, ...]] | None = None
        """The graph that was looked at last, and its inputs, where a case is about graphs."""

    def count(self, output: int, elements: int) -> None:
        """So many elements of that output of a graph were compared."""
        self.compared += elements
