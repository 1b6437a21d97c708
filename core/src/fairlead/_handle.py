"""What a compiled program carries as its attribute ``fairlead``."""

from __future__ import annotations

from typing import Any

from fairlead._compile import Session
from fairlead.placement import Placement


class Handle:
    """The compiled program's own account of itself."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def backend(self) -> str:
        """The name of the backend that was asked for."""
        return self._session.request.backend

    @property
    def placement(self) -> Placement:
        """Where each node of every graph compiled so far went, and why; print it for a table."""
        return self._session.placement

    def refresh(self) -> None:
        """Read all weights anew at the next call.

        Needed only after writes that torch does not count, as to ``p.data``.
        """
        self._session.refresh()

    def __reduce__(self) -> tuple[Any, ...]:
        return Handle, (Session(self._session.request),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Handle:
        return Handle(Session(self._session.request))

    def __repr__(self) -> str:
        return f"<fairlead program on {self.backend}: {len(self.placement.graphs)} graphs>"


def attach(compiled: Any, handle: Handle) -> Any:
    """Put the handle on a compiled module or function, past the module's own ``__setattr__``, which writes to the
    original."""
    compiled.__dict__["fairlead"] = handle
    return compiled
