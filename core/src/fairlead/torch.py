"""The face that torch sees: Dynamo backends called ``fairlead`` and ``fairlead-<backend>``.

Wheels point their ``torch_dynamo_backends`` entry point at an attribute of this module named like the backend, so that
``torch.compile(model, backend="fairlead-openvino")`` works without importing Fairlead first::

    [project.entry-points.torch_dynamo_backends]
    fairlead-acme = "fairlead.torch:acme"
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead import _registry, _settings
from fairlead._arguments import request_of
from fairlead._capture import autocasts, capture, input_sources, runs_as_captured
from fairlead._capture._account import recompilation, time_frame
from fairlead._capture._draws import keep_draws
from fairlead._capture._dynamo import deny_exporting
from fairlead._capture._recurrent import allow_lstm
from fairlead._compile import Request, Session
from fairlead._original import Original
from fairlead._pieces import Piece, recorded
from fairlead._sink import SessionSink
from fairlead.errors import FairleadError

__all__ = ["DynamoBackend", "dynamo_backend"]

deny_exporting(__name__)
allow_lstm(__name__)


class DynamoBackend:
    """What ``torch.compile`` calls with each graph. One object serves one compiled program.

    Errors of Fairlead are raised by the first call of the compiled program, not wrapped by Dynamo. Torch runs a graph
    as it was captured in calls within ``torch.autograd.forward_ad.dual_level``: what is compiled drops tangents.
    """

    def __init__(self, request: Request) -> None:
        self.session = Session(request)

    def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        time_frame()
        if (again := recompilation(gm)) is not None:
            self.session.recompilations.append(again)
        drawn = keep_draws(gm) if self.session.request.rng == "eager" else 0
        original = None if drawn or autocasts() or not runs_as_captured(gm) else Original(gm.forward)
        sink = SessionSink(self.session, original)
        function = capture(gm, inputs, sink, recompute=self.session.recomputes(inputs))
        if drawn:
            piece = Piece(lambda *given: function(*given)[:-drawn], input_sources(gm), None, None)
        else:
            fit = None if autocasts() else sink.fit  # AOTAutograd's wrapper turns it off
            piece = Piece(function, input_sources(gm), sink.program, fit, original)

        def with_tangents(*given: Any) -> Any:
            reason = "what is compiled gives no tangents; compile a function that calls torch.func.jvp instead"
            self.session.ran_within("torch.autograd.forward_ad", reason)
            outputs = gm.forward(*given)
            return outputs[:-drawn] if drawn else outputs

        return recorded(piece, with_tangents)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or what is loaded from a pickle, compiles anew."""
        return DynamoBackend, (self.session.request,)

    def __repr__(self) -> str:
        return f"fairlead-{self.session.request.backend}"


def dynamo_backend(name: str | None = None) -> Callable[..., Any]:
    """A function to pass to ``torch.compile(backend=...)``.

    ``options`` may name ``backend``, and hold the arguments of `fairlead.compile` that torch does not have: fallback,
    max_fallback, verify, rng, precision, share_weights and benchmark.

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
