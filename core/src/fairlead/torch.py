"""The face that torch sees: Dynamo backends called ``fairlead`` and ``fairlead-<backend>``.

Wheels point their ``torch_dynamo_backends`` entry point at an attribute of this module named like the backend, so that
``torch.compile(model, backend="fairlead-openvino")`` works without importing Fairlead first::

    [project.entry-points.torch_dynamo_backends]
    fairlead-acme = "fairlead.torch:acme"
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead import _registry, _settings
from fairlead._arguments import request_of
from fairlead._capture import Arrangement, Captured, capture, input_sources
from fairlead._capture._account import recompilation, time_frame
from fairlead._capture._draws import keep_draws
from fairlead._capture._dynamo import deny_exporting
from fairlead._compile import Request, Session
from fairlead._pieces import Piece, recorded
from fairlead._program import Program
from fairlead.errors import FairleadError
from fairlead.ir import Kind

__all__ = ["DynamoBackend", "dynamo_backend"]

_log = logging.getLogger("fairlead.torch")

deny_exporting(__name__)


class DynamoBackend:
    """What ``torch.compile`` calls with each graph. One object serves one compiled program.

    Errors of Fairlead are raised by the first call of the compiled program, not wrapped by Dynamo.
    """

    def __init__(self, request: Request) -> None:
        self.session = Session(request)

    def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        time_frame()
        if (again := recompilation(gm)) is not None:
            self.session.recompilations.append(again)
        sink = _Sink(self.session)
        drawn = keep_draws(gm) if self.session.request.rng == "eager" else 0
        function = capture(gm, inputs, sink)
        if drawn:
            return recorded(Piece(lambda *given: function(*given)[:-drawn], input_sources(gm), None, None))
        return recorded(Piece(function, input_sources(gm), sink.program, sink.fit))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or what is loaded from a pickle, compiles anew."""
        return DynamoBackend, (self.session.request,)

    def __repr__(self) -> str:
        return f"fairlead-{self.session.request.backend}"


class _Sink:
    def __init__(self, session: Session) -> None:
        self._session = session
        self.program: Program | None = None
        self.fit: Arrangement | None = None

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        try:
            program = self._session.build(captured)
            self.program, self.fit = program, captured.fit
            return _boxed(program)
        except FairleadError as error:
            return _raising(error)

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        ops = [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]
        try:
            self._session.ran_in_torch(str(kind), kind, ops, reason)
        except FairleadError as error:
            return _raising(error)
        _log.warning("the %s graph of %d nodes is left to torch: it has %s", kind, len(ops), reason)
        return _boxed(lambda args: gm.forward(*_taken(args)))


def _boxed(call: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A plain function that AOTAutograd passes a list which the callee empties; it knows that by this attribute."""

    def boxed(args: list[Any]) -> Any:
        return call(args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _raising(error: FairleadError) -> Callable[[list[Any]], Any]:
    """Stands where a program should be, and says at the call why it is not."""

    def fail(args: list[Any]) -> Any:
        raise error

    return _boxed(fail)


def _taken(args: list[Any]) -> list[Any]:
    given = list(args)
    args.clear()
    return given


def dynamo_backend(name: str | None = None) -> Callable[..., Any]:
    """A function to pass to ``torch.compile(backend=...)``.

    ``options`` may name ``backend``, and hold the arguments of `fairlead.compile` that torch does not have: fallback,
    max_fallback, verify, rng, precision and share_weights.

    Every graph that it is called with by one ``torch.compile`` belongs to one program only as far as torch tells them
    apart: use `fairlead.compile` where you need the placement report.
    """

    def compile_graph(
        gm: torch.fx.GraphModule,
        inputs: Sequence[Any],
        *,
        mode: str | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Callable[..., Any]:
        if _settings.disabled():
            return gm.forward
        try:
            backend = DynamoBackend(request_of(name, mode, dict(options or {})))
        except FairleadError as error:
            failure = error

            def failed(*args: Any) -> Any:
                raise failure

            return failed
        return backend(gm, inputs)

    compile_graph.__name__ = f"fairlead_{name or 'any'}"
    return compile_graph


@functools.cache
def __getattr__(name: str) -> Callable[..., Any]:
    if name != "fairlead" and name not in _registry.names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: no backend is called so")
    return dynamo_backend(None if name == "fairlead" else name)
