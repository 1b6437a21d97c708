"""The stages of a program as spans: in a file, in the process's own provider, and as ranges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import fairlead
import fairlead_trace
from fairlead.errors import ArgumentError, PluginError
from fairlead.explanation import Stage
from fairlead.hooks import CompileJob, hookimpl, plugin_manager
from fairlead_trace._plugin import TracePlugin


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    """The plugin takes part, whether or not its wheel is installed."""
    manager = plugin_manager()
    if manager.is_registered(fairlead_trace.plugin):
        yield
        return
    manager.register(fairlead_trace.plugin, "trace")
    yield
    manager.unregister(fairlead_trace.plugin)


def compile_one(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.reset()
    result: torch.Tensor = fairlead.compile(lambda x: x.relu() + 1, backend="eager")(x)
    return result


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["traceEvents"]
    return found


def test_a_recording_has_every_stage_within_those_that_it_is_part_of(tmp_path: Path) -> None:
    with fairlead_trace.recording(tmp_path / "trace.json"):
        compile_one(torch.ones(3))
    compile_one(torch.ones(3))
    found = events(tmp_path / "trace.json")
    by_name = {e["name"].removeprefix("fairlead."): e for e in found}
    assert len(by_name) == len(found) >= 6
    for inner, outer in ((Stage.capture, Stage.autograd), (Stage.autograd, Stage.dynamo)):
        assert by_name[outer]["ts"] <= by_name[inner]["ts"]
        assert by_name[inner]["ts"] + by_name[inner]["dur"] <= by_name[outer]["ts"] + by_name[outer]["dur"] + 1e3
    assert by_name[Stage.backend]["args"]["fairlead.detail"].startswith("eager ")
    assert {e["ph"] for e in found} == {"X"}


def test_spans_are_children_of_what_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    own = trace.get_tracer("service", tracer_provider=provider)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with own.start_as_current_span("request"):
        compile_one(torch.ones(3))
    spans = {s.name: s for s in kept.get_finished_spans()}
    for inner, outer in (("fairlead.capture", "fairlead.aotautograd"), ("fairlead.aotautograd", "request")):
        parent = spans[inner].parent
        assert parent is not None
        assert parent.span_id == spans[outer].get_span_context().span_id


class Refusing:
    @hookimpl
    def fairlead_compile(self, job: CompileJob) -> None:
        raise ValueError("not today")


def test_a_stage_that_raises_ends_its_span(tmp_path: Path) -> None:
    manager = plugin_manager()
    manager.register(refusing := Refusing(), "refusing")
    try:
        with fairlead_trace.recording(tmp_path / "trace.json"), pytest.raises(PluginError, match="not today"):
            compile_one(torch.ones(3))
    finally:
        manager.unregister(refusing)
    assert "fairlead.backend" in {e["name"] for e in events(tmp_path / "trace.json")}


def test_a_whole_process_is_traced_by_an_environment_variable(tmp_path: Path) -> None:
    source = "import torch, fairlead; fairlead.compile(lambda x: x + 1, backend='eager')(torch.ones(3))"
    path = tmp_path / "trace.json"
    environment = {**os.environ, "FAIRLEAD_TRACE": str(path)}
    subprocess.run([sys.executable, "-c", source], check=True, env=environment, timeout=120)
    assert "fairlead.backend" in {e["name"] for e in events(path)}


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path / "no/trace.json", tmp_path):
        with pytest.raises(ArgumentError, match="cannot be written"), fairlead_trace.recording(path):
            raise AssertionError("nothing runs")
    monkeypatch.setenv("FAIRLEAD_TRACE", str(tmp_path / "no/trace.json"))
    with pytest.raises(ArgumentError, match="cannot be written"):
        TracePlugin()


def test_ranges_of_an_unknown_profiler_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_TRACE_RANGES", "perf")
    with pytest.raises(ArgumentError, match="FAIRLEAD_TRACE_RANGES is 'perf'"):
        TracePlugin()


def test_stages_are_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    open_, seen = [], []
    monkeypatch.setattr(torch.profiler.itt, "range_push", lambda name: (open_.append(name), seen.append(name)))
    monkeypatch.setattr(torch.profiler.itt, "range_pop", lambda: open_.pop())
    monkeypatch.setenv("FAIRLEAD_TRACE_RANGES", "itt")
    manager = plugin_manager()
    manager.register(ranged := TracePlugin(), "ranges")
    try:
        compile_one(torch.ones(3))
    finally:
        manager.unregister(ranged)
    assert open_ == []
    assert {name.partition(" ")[0] for name in seen} >= {"fairlead.capture", "fairlead.backend"}
