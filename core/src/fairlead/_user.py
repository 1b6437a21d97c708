"""``fairlead.compile``, with the signature and meaning of ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from fairlead import _settings
from fairlead._dims import Dim
from fairlead.backend import Precision
from fairlead.errors import ArgumentError, TorchMissingError

try:
    import torch
except ImportError as error:
    raise TorchMissingError(
        "compiling a program needs torch, which is not installed",
        where=f"import torch: {error}",
        next="pip install 'fairlead[torch]'",
    ) from error

from fairlead._arguments import request_of
from fairlead._capture import _dynamo
from fairlead._compile import Rng
from fairlead._freeze import Frozen, freeze
from fairlead._handle import Handle, attach, route_of
from fairlead._shapes import Shapes, compile_all
from fairlead._verified import Verify
from fairlead.torch import DynamoBackend

__all__ = ["Dim", "Frozen", "compile", "compile_ahead", "freeze"]

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
    shapes: Mapping[str, Mapping[int, Dim]] | None = ...,
    verify: Verify | None = ...,
    rng: Rng | None = ...,
    precision: Precision | None = ...,
    share_weights: bool = ...,
    benchmark: bool | None = ...,
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
    shapes: Mapping[str, Mapping[int, Dim]] | None = ...,
    verify: Verify | None = ...,
    rng: Rng | None = ...,
    precision: Precision | None = ...,
    share_weights: bool = ...,
    benchmark: bool | None = ...,
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
    shapes: Mapping[str, Mapping[int, Dim]] | None = None,
    verify: Verify | None = None,
    rng: Rng | None = None,
    precision: Precision | None = None,
    share_weights: bool = False,
    benchmark: bool | None = None,
) -> Any:
    """Compile a module, a function or a program of ``torch.export`` with a backend by name; a call or a decorator.

    ``backend``: a name that `list_backends` has; else what `set_default` chose for the device of the
    tensors or for all, else ``FAIRLEAD_BACKEND``, else ``"inductor"``, as torch has it.
    ``fullgraph``, ``dynamic`` and ``disable`` mean what they mean to ``torch.compile``; ``mode`` is for backends that
    have modes. ``options``: the backend's own; an unknown name or a wrong type is an error. ``fallback``: who takes,
    in order, what the backend declines, always reported and never silent; ``()`` for nobody. ``max_fallback``: how
    many nodes of a graph (int), or which share of them (float), may be declined. ``shapes``: the sizes that vary, by
    argument and axis, as in ``{"x": {0: Dim("batch", max=64, buckets=[8, 64])}}``; see `fairlead.Dim` and
    `fairlead.compile_ahead`. ``verify``: the calls that are compared with eager, ``"first"`` for the first of each
    graph, sizes and weights, ``"always"``, or a share of them (float); `fairlead.errors.AccuracyError` names the Part
    that is wrong. ``rng="eager"``: the random numbers are those of eager mode on every backend, bit for bit, and so is
    the generator's state after a call; a backend that draws random numbers itself leaves them to torch.
    ``precision``: the least that is accepted of float32, with one meaning on every backend, which
    `fairlead.backend.Precision` has; left out, backends compute in float32 and torch's kernels as torch is set.
    ``share_weights``: backends read weights at each call where torch has them, instead of holding them packed for their
    kernels, which is faster and takes their memory again. ``benchmark``: left out, a graph on the
    CPU that eager runs quicker than the backend, by 5 %, is left to eager, which its first call finds out: it is made
    several times over. ``True``: the first calls of each graph are made by the backend and by those of ``fallback`` in
    turns, 7 each, and the quickest runs it from then on; results differ by rounding meanwhile. The report has the
    times. ``False``: the backend keeps all that it does not decline.

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
            shapes=shapes,
            verify=verify,
            rng=rng,
            precision=precision,
            share_weights=share_weights,
            benchmark=benchmark,
        )
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    request = request_of(
        backend, mode, options or {}, fallback, max_fallback, verify, rng, precision, share_weights, benchmark
    )
    target = DynamoBackend(request)
    target.session.check()
    if disable or _settings.disabled():
        return model
    declared = Shapes(model, shapes) if shapes else None
    if declared is not None and declared.is_static and dynamic is None:
        dynamic = False
    compiled = torch.compile(model, backend=target, fullgraph=fullgraph, dynamic=dynamic, **_dynamo.APART)
    return attach(compiled, Handle(target, declared, fullgraph=fullgraph))


def compile_ahead(
    compiled: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    progress: bool | None = None,
) -> dict[str, float]:
    """Compile every program that the declared sizes of a program need, each by a call; the seconds of each.

    ``args`` and ``kwargs`` are one example of a call, of any declared sizes; others are made of it. Call it under the
    mode that calls will have (``torch.no_grad()``). Tries out first, in eager mode, that padding to buckets changes
    nothing: `fairlead.errors.ShapeError` where it does. ``progress``: a bar on stderr, by default where that is a
    terminal. Raises `fairlead.errors.ArgumentError` for a program without ``shapes``.

    >>> batch = Dim("batch", max=8, buckets=[1, 8])
    >>> double = compile(lambda x: x + x, backend="eager", shapes={"x": {0: batch}})
    >>> list(compile_ahead(double, [torch.ones(2, 3)]))
    ['batch=1', 'batch=8']
    >>> double(torch.ones(5, 3)).shape
    torch.Size([5, 3])
    """
    handle = getattr(compiled, "__dict__", {}).get("fairlead")
    shapes = handle._shapes if isinstance(handle, Handle) else None
    if shapes is None:
        raise ArgumentError(
            "there are no declared sizes to compile for",
            where="fairlead.compile_ahead",
            next='declare them: fairlead.compile(..., shapes={"x": {0: Dim("batch", max=64, buckets=[8, 64])}})',
        )
    return compile_all(shapes, route_of(compiled).inner, args, kwargs or {}, progress)
