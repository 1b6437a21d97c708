"""Every stage of compiling as a span of OpenTelemetry, and spans in files that Perfetto and Chrome open."""

from __future__ import annotations

from fairlead_trace._chrome import ChromeTraceExporter
from fairlead_trace._plugin import TracePlugin, recording

__all__ = ["ChromeTraceExporter", "TracePlugin", "plugin", "recording"]

plugin = TracePlugin()
"""What the entry point names: reports to the tracer provider of this process, and to what `recording` started."""
