"""How core calls the hooks: typed, free where no plugin takes part, and with the plugin named that raised."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead import _settings, _stages
from fairlead._messages import cause
from fairlead._plugins import CORE
from fairlead._stages import Span
from fairlead.backend import Backend, Executable
from fairlead.errors import FairleadError, PluginError
from fairlead.hooks import CompileJob, Pass, PluginManager, Report, plugin_manager
from fairlead.ir import Graph, Location

if TYPE_CHECKING:
    from fairlead.partition import Part

_log = logging.getLogger("fairlead.plugins")


def passes(target: Backend[Any]) -> tuple[Pass, ...]:
    """The passes of all plugins for ``target``, by stage and name."""
    collected = [p for answer in _ask("fairlead_passes", target=target) or () for p in answer]
    return tuple(sorted(collected, key=lambda p: (p.stage, p.name)))


def choose(graph: Graph, candidates: Sequence[str]) -> str | None:
    """The backend that a plugin picks for ``graph``, None where none does."""
    chosen = _ask("fairlead_choose", graph=graph, candidates=candidates)
    if chosen is None or chosen in candidates:
        return chosen  # type: ignore[no-any-return]  # None or one of the candidates
    raise PluginError(
        f"fairlead_choose answered {chosen!r}, which is none of {', '.join(candidates)}",
        where="the plugins that `fairlead doctor` lists",
        next="name a backend in the call, or fix the plugin",
    )


def captured(graph: Graph, origin: Location | None) -> None:
    _notify("fairlead_captured", graph=graph, origin=origin)


def partitioned(graph: Graph, parts: Sequence[Part]) -> None:
    _notify("fairlead_partitioned", graph=graph, parts=parts)


def compile_job(job: CompileJob) -> Executable:
    """The job's executable, from a plugin or from its backend. What the backend raises comes through as it is."""
    manager = plugin_manager()
    if len(manager.hook.fairlead_compile.get_hookimpls()) == 1:
        return job.backend.compile(job.graph, job.options, job.constants)
    answer: Executable = _ask("fairlead_compile", job=job)
    return answer


def compiled(job: CompileJob, executable: Executable, seconds: float) -> None:
    _notify("fairlead_compiled", job=job, executable=executable, seconds=seconds)


@contextlib.contextmanager
def stage(name: str, detail: str = "") -> Iterator[None]:
    """Time a stage of making a program, and say when it begins and ends."""
    _notify("fairlead_stage_begins", stage=name, detail=detail)
    with _stages.span(name, detail, stage_ends):
        yield


def stage_ends(span: Span) -> None:
    _notify("fairlead_stage_ends", span=span)


def report(report: Report) -> None:
    _notify("fairlead_report", report=report)


def _ask(hook: str, **arguments: object) -> Any:
    manager = plugin_manager()
    caller = getattr(manager.hook, hook)
    if not caller.get_hookimpls():
        return None
    try:
        return caller(**arguments)
    except FairleadError:
        raise
    except Exception as error:  # a plugin's, or a backend's that core's own answer called
        plugin = manager.culprit(hook, error)
        if plugin is None or plugin == CORE:
            raise
        raise _blame(manager, plugin, hook, error) from error


def _notify(hook: str, **arguments: object) -> None:
    manager = plugin_manager()
    plugins = {found.plugin_name: found.plugin for found in getattr(manager.hook, hook).get_hookimpls()}
    for name, plugin in plugins.items():  # each on its own, so that one that raises does not silence the others
        only = manager.subset_hook_caller(hook, [other for other in plugins.values() if other is not plugin])
        try:
            only(**arguments)
        except FairleadError:
            raise
        except Exception as error:  # the plugin's
            failure = _blame(manager, name, hook, error)
            if _settings.strict():
                raise failure from error
            _log.warning("a plugin failed and is ignored this time\n%s", failure)


def _blame(manager: PluginManager, plugin: str, hook: str, error: Exception) -> PluginError:
    return PluginError(
        f"plugin {plugin!r} raised in {hook}: {cause(error)}",
        where=manager.source(plugin),
        next="fix or uninstall the plugin; `fairlead doctor` lists all plugins",
    )
