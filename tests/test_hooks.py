"""Plugins: which take part in what, and how one that is broken is named and left out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fairlead import _hook_calls
from fairlead.backend import Capabilities, NoOptions
from fairlead.errors import BackendNotFoundError, PluginError
from fairlead.hooks import CompileJob, Hooks, Pass, PluginManager, Report, Stage, hookimpl, plugin_manager
from fairlead.ir import Graph, Kind

from .conftest import Site

GRAPH = Graph("forward", Kind.inference, (), (), ())


class Echo:
    """A backend whose executable is the graph that it was given."""

    name = "echo"
    api_version = 1
    capabilities = Capabilities(devices=("cpu",), dtypes=("f32",))
    options_type = NoOptions

    def compile(self, graph: Graph, options: NoOptions, constants: object) -> Any:
        if graph.name == "broken":
            raise OSError("no licence")
        return graph


def job(name: str = "forward") -> CompileJob:
    return CompileJob(Echo(), Graph(name, Kind.inference, (), (), ()), NoOptions(), {})  # type: ignore[arg-type]


@pytest.fixture
def manager() -> Iterator[PluginManager]:
    """This process's manager, which forgets afterwards what a test registered."""
    manager = plugin_manager()
    before = set(manager.get_plugins())
    yield manager
    for plugin in manager.get_plugins() - before:
        manager.unregister(plugin)


def test_the_hooks_are_those_of_the_architecture() -> None:
    manager = PluginManager(Hooks)
    hooks = {name: caller.spec for name, caller in vars(manager.hook).items() if name.startswith("fairlead_")}
    assert {name: tuple(spec.argnames) for name, spec in hooks.items()} == {
        "fairlead_register": ("registry",),
        "fairlead_passes": ("target",),
        "fairlead_choose": ("graph", "candidates"),
        "fairlead_captured": ("graph", "origin"),
        "fairlead_partitioned": ("graph", "parts"),
        "fairlead_compile": ("job",),
        "fairlead_compiled": ("job", "executable", "seconds"),
        "fairlead_stage_begins": ("stage", "detail"),
        "fairlead_stage_ends": ("span",),
        "fairlead_report": ("report",),
    }
    assert [name for name, spec in hooks.items() if spec.opts["firstresult"]] == ["fairlead_choose", "fairlead_compile"]
    assert [name for name, spec in hooks.items() if spec.opts["historic"]] == ["fairlead_register"]


def test_without_plugins_nothing_is_asked() -> None:
    assert _hook_calls.passes(Echo()) == ()  # type: ignore[arg-type]
    assert _hook_calls.choose(GRAPH, ("a", "b")) is None
    _hook_calls.captured(GRAPH, None)
    assert _hook_calls.compile_job(one := job()) is one.graph


def test_passes_run_by_stage_and_name(manager: PluginManager) -> None:
    class First:
        @hookimpl
        def fairlead_passes(self, target: object) -> Sequence[Pass]:
            return [Pass("late", lambda g: g, Stage.decomposed), Pass("b", lambda g: g)]

    class Second:
        @hookimpl
        def fairlead_passes(self) -> Sequence[Pass]:
            return [Pass("a", lambda g: g)]

    manager.register(First())
    manager.register(Second())
    assert [p.name for p in _hook_calls.passes(Echo())] == ["a", "b", "late"]  # type: ignore[arg-type]


def test_the_first_choice_counts_and_must_be_a_candidate(manager: PluginManager) -> None:
    class Chooser:
        answer = "b"

        @hookimpl
        def fairlead_choose(self, candidates: Sequence[str]) -> str:
            return self.answer

    chooser = Chooser()
    manager.register(chooser)
    assert _hook_calls.choose(GRAPH, ("a", "b")) == "b"
    chooser.answer = "z"
    with pytest.raises(PluginError, match="fairlead_choose answered 'z', which is none of a, b"):
        _hook_calls.choose(GRAPH, ("a", "b"))


def test_a_cache_answers_before_the_backend_and_an_observer_sees_both(manager: PluginManager) -> None:
    seen = []

    class Cache:
        @hookimpl
        def fairlead_compile(self, job: CompileJob) -> Any:
            return "stored" if job.graph.name == "known" else None

    class Observer:
        @hookimpl(wrapper=True)
        def fairlead_compile(self, job: CompileJob) -> Any:
            answer = yield
            seen.append(answer)
            return answer

    manager.register(Cache())
    manager.register(Observer())
    assert _hook_calls.compile_job(job("known")) == "stored"
    assert _hook_calls.compile_job(new := job("new")) is new.graph
    assert seen == ["stored", new.graph]


def test_what_a_backend_raises_is_not_blamed_on_a_plugin(manager: PluginManager) -> None:
    class Observer:
        @hookimpl(wrapper=True)
        def fairlead_compile(self, job: CompileJob) -> Any:
            return (yield)

    manager.register(Observer())
    with pytest.raises(OSError, match="no licence"):
        _hook_calls.compile_job(job("broken"))


def test_what_a_plugin_raises_is_not_blamed_on_the_backend(manager: PluginManager) -> None:
    class Cache:
        @hookimpl
        def fairlead_compile(self, job: CompileJob) -> Any:
            raise KeyError("index")

    manager.register(Cache(), "cache")
    with pytest.raises(PluginError) as caught:
        _hook_calls.compile_job(job())
    assert str(caught.value).splitlines() == [
        "FL107: plugin 'cache' raised in fairlead_compile: KeyError: 'index'",
        "  from: plugin cache, registered by hand",
        "  next: fix or uninstall the plugin; `fairlead doctor` lists all plugins",
    ]


def test_an_observer_that_raises_silences_no_other(
    manager: PluginManager, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Good:
        @hookimpl
        def fairlead_captured(self, graph: Graph) -> None:
            seen.append(graph.name)

    class Bad:
        @hookimpl
        def fairlead_captured(self, graph: Graph) -> None:
            raise RuntimeError("disk full")

    for name, plugin in {"one": Good(), "bad": Bad(), "two": Good()}.items():
        manager.register(plugin, name)
    with caplog.at_level(logging.WARNING, "fairlead.plugins"):
        _hook_calls.captured(GRAPH, None)
    assert seen == ["forward", "forward"]
    assert "FL107: plugin 'bad' raised in fairlead_captured: RuntimeError: disk full" in caplog.text
    monkeypatch.setenv("FAIRLEAD_STRICT", "1")
    with pytest.raises(PluginError, match="plugin 'bad' raised in fairlead_captured"):
        _hook_calls.captured(GRAPH, None)


def test_an_error_of_fairlead_that_an_observer_raises_stops_the_compilation(manager: PluginManager) -> None:
    class Policy:
        @hookimpl
        def fairlead_partitioned(self, parts: Sequence[object]) -> None:
            raise BackendNotFoundError("not today", where="policy", next="ask")

    manager.register(Policy())
    with pytest.raises(BackendNotFoundError):
        _hook_calls.partitioned(GRAPH, ())


def test_plugins_add_sections_to_the_report(manager: PluginManager) -> None:
    class Cache:
        @hookimpl
        def fairlead_report(self, report: Report) -> None:
            report.add("cache", {"entries": "3"})
            report.add("cache", {"size": "12 MB"})

    manager.register(Cache())
    report = Report()
    _hook_calls.report(report)
    assert report.sections == {"cache": {"entries": "3", "size": "12 MB"}}


def test_a_misspelt_hook() -> None:
    class Plugin:
        @hookimpl
        def fairlead_captrued(self, graph: Graph) -> None: ...

    manager = PluginManager(Hooks)
    with pytest.raises(PluginError) as caught:
        manager.register(Plugin(), "tracer")
    assert str(caught.value).splitlines() == [
        "FL107: plugin 'tracer' implements the hook fairlead_captrued(graph), which does not exist",
        "  from: plugin tracer, registered by hand",
        "  next: did you mean fairlead_captured(graph, origin)?",
    ]
    assert not manager.has_plugin("tracer")


def test_a_hook_with_an_argument_that_it_does_not_have() -> None:
    class Plugin:
        @hookimpl
        def fairlead_captured(self, grph: Graph) -> None: ...

    with pytest.raises(PluginError) as caught:
        PluginManager(Hooks).register(Plugin(), "tracer")
    what, where, advice = str(caught.value).splitlines()
    assert what.startswith("FL107: plugin 'tracer' does not fit the hook fairlead_captured: Argument(s) {'grph'}")
    assert where == "  from: plugin tracer, registered by hand"
    assert advice == "  next: the hook is fairlead_captured(graph, origin)"


def test_a_hook_that_a_later_core_has_may_be_implemented_optionally() -> None:
    class Plugin:
        @hookimpl(optionalhook=True)
        def fairlead_of_tomorrow(self) -> None: ...

    assert PluginManager(Hooks).register(Plugin(), "modern") == "modern"


BROKEN = {
    "broken": ("import a_missing_module", "does not import: ModuleNotFoundError: No module named 'a_missing_module'"),
    "fatal": ("raise SystemExit(2)", "does not import: SystemExit: 2"),
    "typo": (
        "from fairlead.hooks import hookimpl\n@hookimpl\ndef fairlead_raport(report): pass",
        "implements the hook fairlead_raport(report), which does not exist",
    ),
}


def test_a_plugin_that_knows_what_to_do_about_it_says_so(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    raised = 'ArgumentError("the licence is of last year", where="LICENCE", next="set LICENCE to a new one")'
    site.plugin("licensed", f"from fairlead.errors import ArgumentError\nraise {raised}")
    with caplog.at_level(logging.WARNING, "fairlead.plugins"):
        PluginManager(Hooks).load()
    assert "the licence is of last year" in caplog.text
    assert "next: set LICENCE to a new one" in caplog.text


def test_a_broken_plugin_is_named_once_and_the_others_work(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    for name, (source, _) in BROKEN.items():
        site.plugin(name, source)
    site.plugin("good", "from fairlead.hooks import hookimpl\n@hookimpl\ndef fairlead_report(report): pass")
    manager = PluginManager(Hooks)
    with caplog.at_level(logging.WARNING, "fairlead.plugins"):
        manager.load()
        manager.load()
    errors = {info.name: info.error for info in manager.found if info.distribution.startswith("plugin-")}
    assert errors == {"good": "", **{name: f"plugin {name!r} {what}" for name, (_, what) in BROKEN.items()}}
    assert manager.has_plugin("good")
    assert len(caplog.records) == len(BROKEN)
    assert "from: plugin broken of plugin-broken 1.5 (plugin_broken)" in caplog.text


def test_a_broken_plugin_is_an_error_where_one_asks_for_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_STRICT", "1")
    site.plugin("broken", BROKEN["broken"][0])
    manager = PluginManager(Hooks)
    for _ in range(2):
        with pytest.raises(PluginError, match="plugin 'broken' does not import"):
            manager.load()


def test_a_program_passes_all_hooks_on_its_way(manager: PluginManager) -> None:
    import torch

    import fairlead

    seen: list[tuple[object, ...]] = []

    class Witness:
        @hookimpl
        def fairlead_captured(self, graph: Graph, origin: object) -> None:
            seen.append(("captured", graph.kind))

        @hookimpl
        def fairlead_passes(self, target: Any) -> Sequence[Pass]:
            return [Pass("witness", self.rewrite)]

        def rewrite(self, graph: Graph) -> Graph:
            seen.append(("pass", len(graph.nodes)))
            return graph

        @hookimpl
        def fairlead_partitioned(self, graph: Graph, parts: Sequence[Any]) -> None:
            seen.append(("partitioned", [part.backend for part in parts]))

        @hookimpl(wrapper=True)
        def fairlead_compile(self, job: CompileJob) -> Any:
            seen.append(("compile", job.backend.name))
            return (yield)

        @hookimpl
        def fairlead_compiled(self, job: CompileJob, executable: Any, seconds: float) -> None:
            seen.append(("compiled", seconds > 0))

    manager.register(Witness())
    x = torch.arange(4.0)
    compiled = fairlead.compile(lambda x: x.sin() + 1, backend="eager")
    for _ in range(2):  # the second call passes none
        torch.testing.assert_close(compiled(x), x.sin() + 1)
    assert sorted(seen[:2]) == [("captured", Kind.inference), ("pass", 2)]
    assert seen[2:] == [("partitioned", ["eager"]), ("compile", "eager"), ("compiled", True)]
