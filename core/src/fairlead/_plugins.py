"""Loading plugins so that one that is broken is named and left out, and the others work."""

from __future__ import annotations

import inspect
import logging
import threading
import traceback
from collections.abc import Callable
from importlib import metadata

import msgspec
import pluggy

from fairlead import _settings
from fairlead._messages import cause, nearest
from fairlead.errors import FairleadError, PluginError

GROUP = "fairlead.plugins"

CORE = "fairlead"
"""The name of the plugin with which core itself answers hooks."""

_log = logging.getLogger("fairlead.plugins")


class PluginInfo(msgspec.Struct, frozen=True):
    """A plugin that was found; ``error`` says why it is not in use, and is empty where it is."""

    name: str
    distribution: str
    version: str
    entry_point: str
    error: str = ""


class PluginManager(pluggy.PluginManager):
    """pluggy's manager, whose complaints are `PluginError`, and whose entry-point loader survives a broken plugin.

    pluggy's own loader lets an import error of one plugin through, and its check for misspelt hooks is a call that is
    easily forgotten.
    """

    def __init__(self, specification: type) -> None:
        super().__init__("fairlead")
        self.add_hookspecs(specification)
        self._found: list[PluginInfo] = []
        self._failures: list[PluginError] = []
        self._loaded = False
        self._loading = threading.RLock()

    @property
    def found(self) -> tuple[PluginInfo, ...]:
        """The plugins of the entry points that were loaded, broken ones included."""
        return tuple(self._found)

    def register(self, plugin: object, name: str | None = None) -> str | None:
        """Take part in the hooks that ``plugin`` implements; raises `PluginError` where one does not exist so."""
        known = name or self.get_canonical_name(plugin)
        self._refuse_unknown_hooks(plugin, known)
        try:
            return super().register(plugin, name)
        except FairleadError:
            self._forget(plugin)
            raise
        except Exception as error:  # a faulty signature, or the plugin's own fairlead_register
            self._forget(plugin)
            raise self._refusal(known, error) from error

    def load(self) -> None:
        """Register the plugins of all entry points, once; one that fails is logged, raised if ``FAIRLEAD_STRICT``."""
        with self._loading:
            if not self._loaded:
                self._loaded = True
                for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
                    self._load_one(entry)
        if self._failures and _settings.strict():
            raise self._failures[0]

    def culprit(self, hook: str, error: BaseException) -> str | None:
        """The plugin whose implementation of ``hook`` raised ``error``: the innermost that its traceback passes."""
        names = {_code(found.function): found.plugin_name for found in getattr(self.hook, hook).get_hookimpls()}
        frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        return next((names[code] for code in reversed(frames) if code in names), None)

    def source(self, name: str) -> str:
        """Where a plugin comes from, for the second line of a message."""
        for info in self._found:
            if info.name == name:
                return f"plugin {name} of {info.distribution} {info.version} ({info.entry_point})"
        return f"plugin {name}, registered by hand"

    def _load_one(self, entry: metadata.EntryPoint) -> None:
        wheel = (entry.dist.name, entry.dist.version) if entry.dist else ("unknown wheel", "")
        index = len(self._found)
        self._found.append(PluginInfo(entry.name, *wheel, entry.value))
        try:
            self.register(_import(entry, self.source(entry.name)), entry.name)
        except FairleadError as error:
            failure = error if isinstance(error, PluginError) else self._refusal(entry.name, error)
            self._failures.append(failure)
            self._found[index] = msgspec.structs.replace(self._found[index], error=failure.what)
            _log.warning("a plugin is not in use\n%s", failure)

    def _refuse_unknown_hooks(self, plugin: object, name: str) -> None:
        for attribute in dir(plugin):
            marks = self.parse_hookimpl_opts(plugin, attribute)
            if marks is None or marks.get("optionalhook"):
                continue
            hook = marks.get("specname") or attribute
            caller = getattr(self.hook, hook, None)
            if caller is None or not caller.has_spec():
                written = _signature(hook, getattr(plugin, attribute))
                close = nearest(hook, vars(self.hook))
                raise PluginError(
                    f"plugin {name!r} implements the hook {written}, which does not exist",
                    where=self.source(name),
                    next=f"did you mean {self._specified(close)}?"
                    if close
                    else "see fairlead.hooks.Hooks for what exists",
                )

    def _refusal(self, name: str, error: Exception) -> PluginError:
        if not isinstance(error, pluggy.PluginValidationError):
            return PluginError(
                f"plugin {name!r} cannot be registered: {cause(error)}",
                where=self.source(name),
                next="fix or uninstall the plugin; `fairlead doctor` lists all plugins",
            )
        hook = next((h for h in vars(self.hook) if repr(h) in str(error)), "")
        return PluginError(
            f"plugin {name!r} does not fit the hook {hook}: {str(error).splitlines()[-1]}",
            where=self.source(name),
            next=f"the hook is {self._specified(hook)}",
        )

    def _specified(self, hook: str) -> str:
        spec = getattr(self.hook, hook).spec
        return _signature(hook, spec.function)

    def _forget(self, plugin: object) -> None:
        if self.is_registered(plugin):
            self.unregister(plugin)


def _import(entry: metadata.EntryPoint, where: str) -> object:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # foreign code: whatever its import raises
        raise PluginError(
            f"plugin {entry.name!r} does not import: {cause(error)}",
            where=where,
            next=error.next
            if isinstance(error, FairleadError)
            else "fix or uninstall the plugin; `fairlead doctor` lists all plugins",
        ) from error


def _code(function: Callable[..., object]) -> object:
    return getattr(function, "__code__", None)


def _signature(hook: str, function: Callable[..., object]) -> str:
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return f"{hook}({', '.join(names)})"
