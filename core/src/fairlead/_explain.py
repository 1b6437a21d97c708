"""``fairlead.explain``: what one call of a program made, and ``compile_times``: where the time of all of them went."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead._arguments import request_of
from fairlead._capture._account import Watch, accounted
from fairlead._capture._dynamo import without_limits
from fairlead._stages import Stage, own_seconds, since
from fairlead.explanation import CompileTimes, Explanation
from fairlead.torch import DynamoBackend

__all__ = ["compile_times", "explain"]


def explain(
    model: Callable[..., Any],
    *,
    backend: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    fallback: Sequence[str] | str | bool | None = ("inductor", "eager"),
    max_fallback: int | float | None = None,
    then: Callable[[Any], object] | None = None,
) -> Callable[..., Explanation]:
    """A function to call as ``model``, which answers with what the call made instead of what it computes.

    The model is compiled anew with the backend, whatever was compiled before, and really called, once: its side effects
    happen. The arguments are those of `fairlead.compile`. ``then`` is given the model's result, and belongs to the
    call: ``then=lambda loss: loss.backward()`` explains a training step. What the model or ``then`` raises is raised.

    >>> def double(x):
    ...     y = x + x
    ...     print("doubled")
    ...     return y * 1.5
    >>> explained = explain(double, backend="eager")(torch.ones(2))
    doubled
    >>> len(explained.graphs), [b.line.text for b in explained.breaks]
    (2, ['print("doubled")'])
    """
    request = request_of(backend, mode, options or {}, fallback, max_fallback)
    DynamoBackend(request).session.check()

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        target, watch = DynamoBackend(request), Watch()

        def watched(gm: torch.fx.GraphModule, inputs: Sequence[Any], **given: Any) -> Callable[..., Any]:
            watch.graph(gm)
            return target(gm, inputs, **given)

        # What torch.compile calls, which itself cannot be asked for the guards.
        compile_ = torch._dynamo.optimize(watched, nopython=fullgraph, guard_export_fn=watch.guards, dynamic=dynamic)
        compiled: Any = compile_(model)
        moment, began = time.time(), time.perf_counter()
        with accounted() as account, without_limits():  # past which Dynamo would show nothing
            result = compiled(*args, **kwargs)
            if then is not None:
                then(result)
        seconds = time.perf_counter() - began
        spans = tuple(s for s in since(moment) if s.stage != Stage.dynamo)  # the frames have that more exactly
        return Explanation(
            _name(model), request.backend, watch.frames(account), target.session.placement, spans, seconds
        )

    return explained


def compile_times() -> CompileTimes:
    """Where the time went that making Fairlead's programs took in this process so far, by stage; each backend apart.

    Seconds on the clock. Functions of which Dynamo made no graph are not in it.

    >>> isinstance(compile_times().stages, dict)
    True
    """
    return CompileTimes(own_seconds(since()))


def _name(model: Callable[..., Any]) -> str:
    return type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", repr(model))
