"""From the stages that core tells of to spans."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from fairlead.explanation import Span
from fairlead.hooks import hookimpl
from fairlead_trace._chrome import ChromeTraceExporter
from fairlead_trace._ranges import Ranges, ranges

__all__ = ["TracePlugin", "recording"]

FILE = "FAIRLEAD_TRACE"
"""The environment variable that names a file for the spans of the whole process."""

RANGES = "FAIRLEAD_TRACE_RANGES"
"""The environment variable that turns stages into ranges of a profiler: ``nvtx`` or ``itt``."""


class _Open(threading.local):
    """The stages that have begun in this thread: their spans, and what makes the one outside current again."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, list[trace.Span], Any]] = []


_recorders: list[TracerProvider] = []


class TracePlugin:
    """Listens to core. Each stage is a span, the child of the span that is current when it begins.

    Without a provider of the process (``opentelemetry.trace.set_tracer_provider``) and without `recording`, spans are
    OpenTelemetry's that do nothing.
    """

    def __init__(self) -> None:
        self._open = _Open()
        self._ranges: Ranges | None = ranges(os.environ.get(RANGES, ""))
        if path := os.environ.get(FILE):
            provider = _started(path)
            atexit.register(provider.shutdown)

    @hookimpl
    def fairlead_stage_begins(self, stage: str, detail: str) -> None:
        """Begin a span."""
        attributes = _attributes(detail, threading.get_ident())
        spans = [_tracer(p).start_span(f"fairlead.{stage}", attributes=attributes) for p in (None, *_recorders)]
        token = context.attach(trace.set_span_in_context(spans[0]))
        self._open.stages.append((stage, spans, token))
        if self._ranges is not None:
            self._ranges.push(f"fairlead.{stage} {detail}".rstrip())

    @hookimpl
    def fairlead_stage_ends(self, span: Span) -> None:
        """End it; a stage that is told of at its end alone is made whole from its times."""
        if self._open.stages and self._open.stages[-1][0] == span.stage:
            _, spans, token = self._open.stages.pop()
            context.detach(token)
            for each in spans:
                each.end()
            if self._ranges is not None:
                self._ranges.pop()
            return
        start, end = (int(1e9 * moment) for moment in (span.start, span.start + span.seconds))
        for provider in (None, *_recorders):
            made = _tracer(provider).start_span(
                f"fairlead.{span.stage}", start_time=start, attributes=_attributes(span.detail, span.thread)
            )
            made.end(end_time=end)


@contextlib.contextmanager
def recording(path: str | os.PathLike[str]) -> Iterator[None]:
    """Write the stages of every program that is made inside to a file for Perfetto or ``chrome://tracing``.

    Where the process has a tracer provider of its own, that is told as well.
    """
    provider = _started(path)
    try:
        yield
    finally:
        _recorders.remove(provider)
        provider.shutdown()


def _started(path: str | os.PathLike[str]) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(ChromeTraceExporter(path)))
    _recorders.append(provider)
    return provider


def _tracer(provider: TracerProvider | None) -> trace.Tracer:
    return trace.get_tracer("fairlead", tracer_provider=provider)


def _attributes(detail: str, thread: int) -> dict[str, str | int]:
    return {"thread.id": thread, **({"fairlead.detail": detail} if detail else {})}
