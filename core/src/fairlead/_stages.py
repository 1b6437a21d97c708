"""How long each stage of making a program took: spans of this process, nested as the stages are."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

import msgspec

__all__ = ["Span", "Stage", "note", "own_seconds", "since", "span"]

_KEPT = 20_000
"""So many of the latest spans are kept; a graph makes about ten."""


class Stage:
    """The names of the stages, in the order in which a first call goes through them."""

    dynamo: ClassVar[str] = "dynamo"
    autograd: ClassVar[str] = "aotautograd"
    capture: ClassVar[str] = "capture"
    passes: ClassVar[str] = "passes"
    placement: ClassVar[str] = "placement"
    constants: ClassVar[str] = "constants"
    backend: ClassVar[str] = "backend"
    run: ClassVar[str] = "run"


class Span(msgspec.Struct, frozen=True, gc=False):
    """One stage of one graph: when it began, in seconds since the epoch, and how long it took on the clock.

    ``own``: the seconds of it that no span within it has. ``detail``: the graph, and the backend that compiled it.
    """

    stage: str
    start: float
    seconds: float
    own: float
    detail: str = ""
    thread: int = 0


class _Within(threading.local):
    """The seconds that the spans within each open span of this thread took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []


_spans: deque[Span] = deque(maxlen=_KEPT)
_within = _Within()


@contextlib.contextmanager
def span(stage: str, detail: str = "", ended: Callable[[Span], None] | None = None) -> Iterator[None]:
    """Time what runs inside, also where it raises; ``ended`` is told."""
    _within.seconds.append(0.0)
    start, began = time.time(), time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - began
        inner = _within.seconds.pop()
        if _within.seconds:
            _within.seconds[-1] += seconds
        found = Span(stage, start, seconds, max(seconds - inner, 0.0), detail, threading.get_ident())
        _spans.append(found)
        if ended is not None:
            ended(found)


def note(stage: str, start: float, inner: str) -> Span:
    """A span from ``start``, in seconds since the epoch, to now; the spans ``inner`` since then are within it."""
    seconds = time.time() - start
    inside = sum(s.seconds for s in since(start) if s.stage == inner)
    found = Span(stage, start, seconds, max(seconds - inside, 0.0), "", threading.get_ident())
    _spans.append(found)
    return found


def own_seconds(spans: Iterable[Span]) -> dict[str, float]:
    """Seconds by stage, each without what other stages took within it; each backend apart.

    >>> own_seconds([Span("backend", 0.0, 2.0, 2.0, "onnxrt inference_0"), Span("passes", 0.0, 1.0, 0.5)])
    {'backend onnxrt': 2.0, 'passes': 0.5}
    """
    found: dict[str, float] = {}
    for each in spans:
        name = f"{each.stage} {each.detail.partition(' ')[0]}" if each.stage == Stage.backend else each.stage
        found[name] = found.get(name, 0.0) + each.own
    return found


def since(moment: float = 0.0) -> tuple[Span, ...]:
    """The spans that began at or after ``moment``, in seconds since the epoch, by their beginning."""
    return tuple(sorted((s for s in tuple(_spans) if s.start >= moment), key=lambda s: (s.start, -s.seconds)))
