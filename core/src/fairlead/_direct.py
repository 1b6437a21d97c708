"""A call of a frozen program past torch's guards and AOTAutograd: Dynamo's bytecode around the backend's program."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead._capture._dynamo import Frame
from fairlead._pieces import Ran

Direct = Callable[..., Any]

_numbers = itertools.count()


class _Reached(Exception):
    """The graph would have been called."""


class _Anything(dict[Any, Any]):
    """Stands for a module, and for every part of it, where the weights that are collected from it are not used.

    What it is asked for it keeps, so that the interpreter finds it without a call the next time.
    """

    def __getattr__(self, name: str) -> _Anything:
        self.__dict__[name] = self
        return self

    def __missing__(self, key: object) -> _Anything:
        self[key] = self
        return self


def direct_call(
    frame: Frame, ran: Ran, args: Sequence[Any], kwargs: Mapping[str, Any], *, holds_weights: bool
) -> Direct | None:
    """A function of the same arguments that calls the program without a look at guards, None where there is none.

    ``ran`` is what the graph was called with when it was called with ``args`` and ``kwargs``. With ``holds_weights``
    the weights of that call are used from then on, else those that the module has.
    """
    graph = ran.piece.past_autograd()
    if graph is None:
        return None
    if holds_weights:
        graph = _holding(ran)
    others = [s.name for s in ran.piece.sources if not s.kind]
    if holds_weights and frame.collects_from_root(others):
        call = _installed(frame, graph, _Anything())
        if _reaches(frame, args, kwargs):
            return call
    return _installed(frame, graph, None)


def _installed(frame: Frame, graph: Callable[..., Any], root: object | None) -> Direct:
    name = f"__fairlead_frozen_{next(_numbers)}"
    remove = frame.install(name, graph)
    call = frame.calling(name, root=root)
    weakref.finalize(getattr(call, "__func__", call), remove).atexit = False
    return call


def _reaches(frame: Frame, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the bytecode gets as far as the graph with a stand-in for the module."""

    def reached(*inputs: Any) -> Any:
        raise _Reached

    try:
        _installed(frame, reached, _Anything())(*args, **kwargs)
    except _Reached:
        return True
    except Exception:  # whatever the bytecode wants of a module that the stand-in does not have
        return False
    return False


def _holding(ran: Ran) -> Callable[..., Sequence[Any]]:
    program, fit, original = ran.piece.program, ran.piece.fit, ran.piece.original
    assert program is not None
    assert fit is not None
    weights = {i for i, source in enumerate(ran.piece.sources) if source.kind}
    if original is not None and original.has_taken_over:
        held, forward = ran.inputs, original.forward
        return lambda *inputs: forward(*(held[i] if i in weights else x for i, x in enumerate(inputs)))
    places = [place for place, i in enumerate(fit.inputs) if i not in weights]
    call = program.bound([ran.inputs[i] for i in fit.inputs], places)
    taken, outputs = [fit.inputs[place] for place in places], fit.outputs

    def graph(*inputs: Any) -> list[Any]:
        results = call([inputs[i] for i in taken])
        return [results[i] for i in outputs]

    return graph
