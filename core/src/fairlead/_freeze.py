"""``fairlead.freeze``: from then on only what is compiled runs."""

from __future__ import annotations

import logging
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from fairlead import _pieces
from fairlead._capture import _dynamo
from fairlead._direct import Direct, direct_call
from fairlead._handle import Handle, programs, route_of
from fairlead.errors import ArgumentError, NotCompiledError
from fairlead.torch import DynamoBackend

_log = logging.getLogger("fairlead.freeze")

Miss = Literal["error", "eager"]
Weights = Literal["watched", "constant"]

_MAX_SIGNATURES = 4096
"""How many ways to be called one program keeps in mind; then it begins anew."""


class Frozen:
    """Programs that are held to what is compiled, until `thaw`. A context manager that thaws them at its end."""

    def __init__(self, compiled: Sequence[Any], miss: Miss, weights: Weights) -> None:
        self._held = tuple(_Held(each, miss, weights) for each in compiled)
        for each in self._held:
            each.start()

    @property
    def misses(self) -> int:
        """How many calls so far had nothing compiled for them."""
        return sum(each.misses for each in self._held)

    def refresh(self) -> None:
        """Read all weights anew: the next call of each program compiles what depends on them."""
        for each in self._held:
            each.refresh()

    def thaw(self) -> None:
        """Let the programs compile again what they have not met."""
        for each in self._held:
            each.stop()

    def __enter__(self) -> Frozen:
        return self

    def __exit__(self, *exception: object) -> None:
        self.thaw()

    def __repr__(self) -> str:
        return f"<{len(self._held)} frozen programs: {self.misses} misses>"


def freeze(*compiled: Any, miss: Miss = "error", weights: Weights = "watched") -> Frozen:
    """Hold programs of `fairlead.compile` to what is compiled so far; without any, all that there are.

    From now on, for good or to the end of a ``with`` block, nothing is compiled: call a program before in every way in
    which it will be called, its backward too. ``miss`` says what becomes of a call that nothing was compiled for:
    ``"error"`` is a `fairlead.errors.NotCompiledError`, raised before anything has run; ``"eager"`` runs it in eager
    mode, with a warning the first time, and counts it.

    Compared at each call: the arguments (structure, Python values, and of tensors dtype, shape, strides, device,
    ``requires_grad``), gradient and inference mode, the module's ``training``, its hooks. Everything else that torch's
    guards look at (attributes of modules, globals) is taken to be what it was. Calls with gradients, under autocast or
    in a mode, programs with graph breaks, and arguments that are objects keep torch's guards. ``weights``:
    ``"watched"`` compares identity, version and address of each at every call, and other weights are a miss;
    ``"constant"`` looks at none, which is the fastest, and asks for `Frozen.refresh` after any change.

    >>> import torch
    >>> from fairlead import compile
    >>> @compile(backend="eager", dynamic=False)
    ... def double(x):
    ...     return x + x
    >>> with torch.no_grad():
    ...     _ = double(torch.ones(2))
    ...     with freeze(double, miss="eager") as frozen:
    ...         results = double(torch.ones(2)), double(torch.ones(3))
    >>> results, frozen.misses
    ((tensor([2., 2.]), tensor([2., 2., 2.])), 1)
    """
    if miss not in ("error", "eager"):
        raise _argument(f"miss is {miss!r}", 'pass miss="error" or miss="eager"')
    if weights not in ("watched", "constant"):
        raise _argument(f"weights is {weights!r}", 'pass weights="watched" or weights="constant"')
    for each in compiled:
        if not isinstance(getattr(each, "__dict__", {}).get("fairlead"), Handle):
            raise _argument(f"a {type(each).__name__} cannot be frozen", "pass what fairlead.compile returned")
    return Frozen(compiled or tuple(programs), miss, weights)


def _argument(what: str, advice: str) -> ArgumentError:
    return ArgumentError(what, where="fairlead.freeze", next=advice)


class _Held:
    """One program while it is frozen.

    The first two calls of each signature go through torch's guards. They say which compiled graph serves it, and that
    a call changes nothing that guards look at. Where it is one graph, by itself, the others go straight to it.
    """

    def __init__(self, compiled: Any, miss: Miss, weights: Weights) -> None:
        self._compiled = compiled
        self._route = route_of(compiled)
        self._before = self._route.inner
        self._backend: DynamoBackend = compiled.fairlead._target
        self._function = _dynamo.original(self._route.torch)
        self._top = _dynamo.top_function(self._function)
        self._root: Any = compiled._orig_mod if isinstance(compiled, torch.nn.Module) else None
        self._miss = miss
        self._weights = weights
        self._met: dict[Any, object] = {}
        self._known: dict[Any, Direct | None] = {}
        self._warned: set[str] = set()
        self._release: Callable[[], None] | None = None
        self.misses = 0

    def start(self) -> None:
        self._backend.session.is_frozen = True
        self._release = _dynamo.hold_order()
        self._route.lead(self)

    def stop(self) -> None:
        if self._release is None:
            return
        self._release()
        self._release = None
        self._backend.session.is_frozen = False
        self._route.lead(self._before)
        self._forget()

    def refresh(self) -> None:
        self._backend.session.refresh()
        self._forget()

    def _forget(self) -> None:
        self._met.clear()
        self._known.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._route.torch(*args, **kwargs)
        if _dynamo.in_forward_mode():
            return self._differentiated(args, kwargs)
        key = self._key(args, kwargs)
        if key is None:
            return self._guarded(args, kwargs)[0]
        direct = self._known.get(key)
        if direct is not None:
            return direct(*args, **kwargs)
        result, runs = self._guarded(args, kwargs)
        if key not in self._known and runs:
            self._learn(key, runs, args, kwargs)
        return result

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call is known by; None where only torch's guards can tell."""
        state = _dynamo.thread_state()
        if state is None or (self._root is not None and _dynamo.has_hooks(self._root)):
            return None
        described = _dynamo.signature(args, kwargs)
        if described is None:
            return None
        return state, self._root is not None and self._root.training, described

    def _learn(self, key: Any, runs: Sequence[_pieces.Ran], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        called = tuple(ran.called for ran in runs)
        if len(self._met) >= _MAX_SIGNATURES:
            self._forget()
        if self._met.get(key) != called:
            self._met[key] = called
            return
        frame = _dynamo.frame_of(self._top, runs[0].called) if self._top and len(runs) == 1 else None
        if frame is None:
            self._known[key] = None
        else:
            self._known[key] = direct_call(frame, runs[0], args, kwargs, holds_weights=self._weights == "constant")

    def _guarded(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Sequence[_pieces.Ran]]:
        """A call through torch's guards, and the pieces that ran."""
        missed: list[types.CodeType] = []

        def miss(code: types.CodeType) -> None:
            if self._miss == "error" or (self._top is not None and code is self._top.function.__code__):
                raise self._missed(args, kwargs)
            if not missed:
                self._note(self._missed(args, kwargs))
            missed.append(code)

        with _pieces.recording() as runs:
            try:
                result = _dynamo.run_compiled(self._route.torch, args, kwargs, miss)
                if not runs and not missed and self._backend.session.has_programs:
                    self._unasked(args, kwargs)
                return result, runs
            except NotCompiledError as error:
                if len(runs) > 1:
                    self.misses += 1
                    raise
                return self._instead(error, args, kwargs), ()

    def _instead(self, error: NotCompiledError, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The call in eager mode where that is chosen; raises the error elsewhere."""
        if self._miss == "error":
            self.misses += 1
            raise error
        self._note(error)
        return self._function(*args, **kwargs)

    def _differentiated(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Within ``forward_ad.dual_level``: what is compiled knows of no tangents."""
        forward = NotCompiledError(
            "a frozen program has no derivatives of forward mode",
            where=f"frozen on {self._backend.session.request.backend!r}, called within forward_ad.dual_level",
            next='compile a function that uses torch.func.jvp, or freeze with miss="eager"',
        )
        return self._instead(forward, args, kwargs)

    def _unasked(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Nothing that was compiled has run, and Dynamo did not ask: it gave the function up at its limit."""
        if any(isinstance(leaf, torch.Tensor) for leaf in _dynamo.flattened((args, kwargs))[0]):
            error = self._missed(args, kwargs)
            if self._miss == "error":
                raise error
            self._note(error)

    def _note(self, error: NotCompiledError) -> None:
        self.misses += 1
        if error.what not in self._warned:
            self._warned.add(error.what)
            _log.warning("%s\nrunning it in eager mode", error)

    def _missed(self, args: Sequence[Any], kwargs: dict[str, Any]) -> NotCompiledError:
        name = getattr(self._function, "__name__", "program") if self._root is None else type(self._root).__name__
        shown = ", ".join([*map(_shown, args), *(f"{k}={_shown(v)}" for k, v in kwargs.items())])
        return NotCompiledError(
            f"a frozen program has nothing compiled for {name}({shown})",
            where=f"frozen on {self._backend.session.request.backend!r}, {len(self._met)} signatures in use",
            next='call it so before freezing, or freeze with miss="eager"',
        )


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return f"{value!r:.40}"
