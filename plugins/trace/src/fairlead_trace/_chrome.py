"""Spans as the JSON of Chrome's trace viewer, which Perfetto reads too.

The form is that of "Trace Event Format": complete events (``ph`` X) with microseconds since the epoch, one row for each
thread.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from fairlead.errors import ArgumentError

__all__ = ["ChromeTraceExporter"]


class ChromeTraceExporter(SpanExporter):
    """Collects spans, and writes all of them to a file when it is flushed or shut down.

    The file is written anew each time and is complete each time. Raises `ArgumentError` where it cannot be written,
    before anything is collected.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        folder = self._path.absolute().parent
        if self._path.is_dir() or not os.access(folder, os.W_OK):
            raise ArgumentError(
                f"{self._path} cannot be written",
                where="fairlead-trace: FAIRLEAD_TRACE, or the path of a recording",
                next="name a file in a folder that exists",
            )
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take these spans in."""
        with self._lock:
            self._events.extend(map(_event, spans))
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Write the file."""
        with self._lock:
            text = json.dumps({"traceEvents": sorted(self._events, key=lambda e: e["ts"]), "displayTimeUnit": "ms"})
        partial = self._path.with_name(self._path.name + ".part")
        partial.write_text(text, "utf-8")
        partial.replace(self._path)
        return True

    def shutdown(self) -> None:
        """Write the file for the last time."""
        self.force_flush()


def _event(span: ReadableSpan) -> dict[str, Any]:
    attributes = dict(span.attributes or {})
    start, end = span.start_time or 0, span.end_time or 0
    return {
        "name": span.name,
        "cat": "fairlead",
        "ph": "X",
        "ts": start / 1e3,
        "dur": (end - start) / 1e3,
        "pid": os.getpid(),
        "tid": attributes.pop("thread.id", 0),
        "args": attributes,
    }
