"""What a compiled program carries as its attribute ``fairlead``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from fairlead.explanation import Recompilation
from fairlead.placement import Placement
from fairlead.torch import DynamoBackend


class Handle:
    """The compiled program's own account of itself."""

    def __init__(self, target: DynamoBackend) -> None:
        self._target = target

    @property
    def backend(self) -> str:
        """The name of the backend that was asked for."""
        return self._target.session.request.backend

    @property
    def placement(self) -> Placement:
        """Where each node of every graph compiled so far went, and why; print it for a table."""
        return self._target.session.placement

    @property
    def recompilations(self) -> tuple[Recompilation, ...]:
        """Every time that a function of the program was compiled again, and the guard that had failed."""
        return tuple(self._target.session.recompilations)

    def refresh(self) -> None:
        """Read all weights anew at the next call.

        Needed only after writes that torch does not count, as to ``p.data``.
        """
        self._target.session.refresh()

    def __repr__(self) -> str:
        return f"<fairlead program on {self.backend}: {len(self.placement.graphs)} graphs>"


def attach(compiled: Any, handle: Handle) -> Any:
    """Put the handle on a compiled module or function.

    Past the module's own ``__setattr__``, which writes to the original. A deep copy of a module, and what is loaded
    from a pickle, compile anew and have a handle of their own: both ask the object for ``__reduce_ex__``, and torch's
    passes no attributes on.
    """
    compiled.__dict__["fairlead"] = handle
    if isinstance(compiled, torch.nn.Module):
        compiled.__dict__["__reduce_ex__"] = functools.partial(_reduced, compiled, handle)
    return compiled


def _reduced(compiled: torch.nn.Module, handle: Handle, protocol: Any) -> tuple[Any, ...]:
    reduced: Any = type(compiled).__reduce_ex__(compiled, protocol)
    make, arguments, *rest = reduced
    return _attached, (make, arguments, handle), *rest


def _attached(make: Callable[..., Any], arguments: tuple[Any, ...], handle: Handle) -> Any:
    """``handle`` and the context among ``arguments`` have been copied together: they share the copied target."""
    return attach(make(*arguments), handle)
