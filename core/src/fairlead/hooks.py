"""Hooks: what plugins may listen to or answer while a program is compiled; none runs when it is called.

A plugin is a module or an object behind an entry point of the group ``fairlead.plugins``, or registered by hand. Its
functions carry the `hookimpl` mark and the name of one of `Hooks`, and take any of that hook's arguments, by name.

>>> class Names:
...     @hookimpl
...     def fairlead_captured(self, graph):
...         print("captured", graph.name)
>>> manager = plugin_manager(load=False)
>>> manager.register(Names(), "names")
'names'
>>> manager.unregister(name="names") is not None
True
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pluggy

from fairlead._plugins import CORE, PluginInfo, PluginManager
from fairlead._stages import Span
from fairlead.backend import Backend, Executable, Options
from fairlead.ir import Graph, Location

if TYPE_CHECKING:
    import torch

    from fairlead._registry import Registry
    from fairlead.partition import Part

__all__ = [
    "CompileJob",
    "Hooks",
    "Pass",
    "PluginInfo",
    "PluginManager",
    "Report",
    "Stage",
    "hookimpl",
    "plugin_manager",
]

hookimpl = pluggy.HookimplMarker("fairlead")
"""Marks a function as the implementation of the hook of the same name."""

_hookspec = pluggy.HookspecMarker("fairlead")


class Stage(enum.IntEnum):
    """When a plugin's pass runs: while composites are whole, or after they were decomposed for the backend."""

    composite = 1
    decomposed = 2


class Pass(msgspec.Struct, frozen=True):
    """A graph rewrite: ``rewrite`` takes a valid graph and returns one with the same inputs, outputs and meaning.

    Passes run by stage and, within one, by name.
    """

    name: str
    rewrite: Callable[[Graph], Graph]
    stage: Stage = Stage.composite


class CompileJob(msgspec.Struct, frozen=True):
    """One Part on its way to a backend: what its ``compile`` will be called with."""

    backend: Backend[Any]
    graph: Graph
    options: Options
    constants: Mapping[int, torch.Tensor]


class Report:
    """What ``fairlead doctor`` prints, while plugins add to it."""

    def __init__(self) -> None:
        self._sections: dict[str, dict[str, str]] = {}

    @property
    def sections(self) -> Mapping[str, Mapping[str, str]]:
        """What was added, by title."""
        return self._sections

    def add(self, title: str, rows: Mapping[str, str]) -> None:
        """Add a section of names and their values; a second one of the same title extends the first."""
        self._sections.setdefault(title, {}).update(rows)


class Hooks:
    """The hooks. What one that returns nothing raises is logged and ignored, unless ``FAIRLEAD_STRICT`` is set."""

    @_hookspec(historic=True)
    def fairlead_register(self, registry: Registry) -> None:
        """Register backends that no wheel provides: ``registry.register(backend)``. Also reaches late plugins."""

    @_hookspec
    def fairlead_passes(self, target: Backend[Any]) -> Sequence[Pass] | None:
        """Graph rewrites for programs that ``target`` will compile. All plugins' passes run, by stage and name."""

    @_hookspec(firstresult=True)
    def fairlead_choose(self, graph: Graph, candidates: Sequence[str]) -> str | None:
        """Which of ``candidates`` compiles ``graph``, where the caller named none. The first answer counts."""

    @_hookspec
    def fairlead_captured(self, graph: Graph, origin: Location | None) -> None:
        """A graph was captured, from the program at ``origin`` where that is known."""

    @_hookspec
    def fairlead_partitioned(self, graph: Graph, parts: Sequence[Part]) -> None:
        """It was decided where each node of ``graph`` runs, and why."""

    @_hookspec(firstresult=True)
    def fairlead_compile(self, job: CompileJob) -> Executable | None:
        """Make a Part runnable. The first answer counts, as a cache's; core, which calls the backend, is last."""

    @_hookspec
    def fairlead_compiled(self, job: CompileJob, executable: Executable, seconds: float) -> None:
        """A Part was made runnable; ``seconds`` is the wall-clock time that `fairlead_compile` took."""

    @_hookspec
    def fairlead_stage_begins(self, stage: str, detail: str) -> None:
        """A stage of making a program begins in this thread; ``detail`` is the graph, and the backend that compiles it.

        The stages are those of `fairlead.explanation.Stage`.
        """

    @_hookspec
    def fairlead_stage_ends(self, span: Span) -> None:
        """A stage has ended, also where it raised. Of Dynamo's stage nothing but the end is told."""

    @_hookspec
    def fairlead_report(self, report: Report) -> None:
        """``fairlead doctor`` runs: add a section with ``report.add(title, rows)``."""


class _Core:
    """Core's own answer to `Hooks.fairlead_compile`, after everybody else's."""

    @hookimpl(trylast=True)
    def fairlead_compile(self, job: CompileJob) -> Executable:
        return job.backend.compile(job.graph, job.options, job.constants)


@functools.cache
def _empty_manager() -> PluginManager:
    manager = PluginManager(Hooks)
    manager.register(_Core(), CORE)
    return manager


def plugin_manager(*, load: bool = True) -> PluginManager:
    """The manager of this process's plugins, with those of all installed wheels unless ``load`` is False.

    A plugin that does not import, or implements a hook that does not exist, is left out with a warning; under
    ``FAIRLEAD_STRICT`` it is a `PluginError`. Register further plugins with ``plugin_manager().register(plugin,
    name)``.
    """
    manager = _empty_manager()
    if load:
        manager.load()
    return manager
