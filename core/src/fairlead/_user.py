"""``fairlead.compile``, with the signature and meaning of ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from fairlead import _settings
from fairlead.errors import TorchMissingError

try:
    import torch
except ImportError as error:
    raise TorchMissingError(
        "compiling a program needs torch, which is not installed",
        where=f"import torch: {error}",
        next="pip install 'fairlead[torch]'",
    ) from error

from fairlead._arguments import request_of
from fairlead._freeze import Frozen, freeze
from fairlead._handle import Handle, attach
from fairlead.torch import DynamoBackend

__all__ = ["Frozen", "compile", "freeze"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compile(
    model: F,
    *,
    backend: str | None = ...,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    fallback: Sequence[str] | str | bool | None = ...,
    max_fallback: int | float | None = ...,
    disable: bool = ...,
) -> F: ...


@overload
def compile(
    model: None = None,
    *,
    backend: str | None = ...,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    fallback: Sequence[str] | str | bool | None = ...,
    max_fallback: int | float | None = ...,
    disable: bool = ...,
) -> Callable[[F], F]: ...


def compile(
    model: Callable[..., Any] | None = None,
    *,
    backend: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    fallback: Sequence[str] | str | bool | None = ("inductor", "eager"),
    max_fallback: int | float | None = None,
    disable: bool = False,
) -> Any:
    """Compile a module or a function with a backend by name; use it as a call or as a decorator.

    ``backend``: a name that `list_backends` has; else ``FAIRLEAD_BACKEND``, else ``"inductor"``, as torch has it.
    ``fullgraph``, ``dynamic`` and ``disable`` mean what they mean to ``torch.compile``; ``mode`` is for backends that
    have modes. ``options``: the backend's own; an unknown name or a wrong type is an error. ``fallback``: who takes,
    in order, what the backend declines, always reported and never silent; ``()`` for nobody. ``max_fallback``: how
    many nodes of a graph (int), or which share of them (float), may be declined.

    The result has an attribute ``fairlead``, a `fairlead.Handle`: ``placement`` says which node went where and why, and
    ``refresh()`` reads weights anew that were changed behind autograd's back (``p.data.copy_(...)``). A deep copy of a
    compiled module, and one loaded from a pickle, compile anew and have a handle of their own. Raises
    `fairlead.FairleadError`: for a wrong argument or name at once, for what needs the graph at the first call.

    >>> @compile(backend="eager")
    ... def double(x):
    ...     return x + x
    >>> double(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    >>> double.fairlead.placement.native_share
    1.0
    """
    if model is None:
        return lambda given: compile(
            given,
            backend=backend,
            fullgraph=fullgraph,
            dynamic=dynamic,
            mode=mode,
            options=options,
            fallback=fallback,
            max_fallback=max_fallback,
            disable=disable,
        )
    target = DynamoBackend(request_of(backend, mode, options or {}, fallback, max_fallback))
    target.session.check()
    if disable or _settings.disabled():
        return model
    return attach(torch.compile(model, backend=target, fullgraph=fullgraph, dynamic=dynamic), Handle(target))
