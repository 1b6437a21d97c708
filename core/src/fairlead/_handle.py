"""What a compiled program carries as its attribute ``fairlead``."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch

from fairlead._capture import _dynamo
from fairlead._shapes import Shapes
from fairlead.explanation import Recompilation
from fairlead.placement import Placement
from fairlead.torch import DynamoBackend

programs: weakref.WeakSet[Any] = weakref.WeakSet()
"""The compiled modules and functions that are alive: what ``freeze()`` without a program is about."""


class Handle:
    """The compiled program's own account of itself."""

    def __init__(self, target: DynamoBackend, shapes: Shapes | None = None, *, fullgraph: bool = False) -> None:
        self._target = target
        self._shapes = shapes
        self._fullgraph = fullgraph

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


class Route:
    """Where a call of a compiled program goes: to torch, or to what holds the program to what is compiled.

    Before that, sizes are padded to what was declared. What is called within a transform of ``torch.func`` is kept from
    torch, unless it has to be one graph: torch says so then.
    """

    def __init__(self, compiled: Any, handle: Handle) -> None:
        self._module = compiled if isinstance(compiled, torch.nn.Module) else None
        self._shapes = handle._shapes
        self.torch: Callable[..., Any] = compiled.forward if self._module is not None else compiled
        self.lead(self.torch if handle._fullgraph else _outside_transforms(handle._target, self.torch))

    def lead(self, call: Callable[..., Any]) -> None:
        """Have calls go to ``call`` from now on."""
        self.inner = call
        self.call = call if self._shapes is None else functools.partial(_padded, self._shapes, call)
        if self._module is not None:  # past __setattr__, which writes to the original
            self._module.__dict__["forward"] = self.call


def _outside_transforms(target: DynamoBackend, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """A function to call in its place, which runs in eager mode within a transform. Every call goes through it."""
    is_traced, transform_around = torch.compiler.is_dynamo_compiling, _dynamo.transform_around

    def call(*args: Any, **kwargs: Any) -> Any:
        if is_traced() or (transform := transform_around()) is None:
            return compiled(*args, **kwargs)
        target.session.ran_within(f"torch.func.{transform.key().name.lower()}")
        return _dynamo.original(compiled)(*args, **kwargs)

    return call


def _padded(shapes: Shapes, inner: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return inner(*args, **kwargs) if torch.compiler.is_compiling() else shapes.call(inner, args, kwargs)


def attach(compiled: Any, handle: Handle) -> Any:
    """Put the handle on a compiled module, or on a function that calls what was compiled.

    Past the module's own ``__setattr__``, which writes to the original. A deep copy of a module, and what is loaded
    from a pickle, compile anew and have a handle of their own: both ask the object for ``__reduce_ex__``, and torch's
    passes no attributes on.
    """
    if isinstance(compiled, types.FunctionType):
        compiled = _routed(compiled, handle)
    compiled.__dict__["fairlead"] = handle
    route_of(compiled)
    if isinstance(compiled, torch.nn.Module):
        compiled.__dict__["__reduce_ex__"] = functools.partial(_reduced, compiled, handle)
    programs.add(compiled)
    return compiled


def route_of(compiled: Any) -> Route:
    """The way that calls of the program take, made where it has none yet."""
    found = compiled.__dict__.get("_fairlead_route")
    if found is None:
        found = compiled.__dict__["_fairlead_route"] = Route(compiled, compiled.fairlead)
    route: Route = found
    return route


def _routed(function: Callable[..., Any], handle: Handle) -> Any:
    route = Route(function, handle)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return route.call(*args, **kwargs)

    call.__dict__["_fairlead_route"] = route
    return call


def _reduced(compiled: torch.nn.Module, handle: Handle, protocol: Any) -> tuple[Any, ...]:
    reduced: Any = type(compiled).__reduce_ex__(compiled, protocol)
    make, arguments, *rest = reduced
    return _attached, (make, arguments, handle), *rest


def _attached(make: Callable[..., Any], arguments: tuple[Any, ...], handle: Handle) -> Any:
    """``handle`` and the context among ``arguments`` have been copied together: they share the copied target."""
    return attach(make(*arguments), handle)
