"""Backends by name: found in the metadata of installed wheels, imported only when one is used."""

from __future__ import annotations

import enum
import threading
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import msgspec

from fairlead import _contract
from fairlead._messages import cause, listed, nearest
from fairlead.backend import Backend, Capabilities, Probe
from fairlead.errors import (
    BackendConflictError,
    BackendImportError,
    BackendNotFoundError,
    BackendNotReadyError,
    FairleadError,
    PluginError,
)
from fairlead.hooks import PluginManager, plugin_manager

GROUP = "fairlead.backends"

FIRST_PARTY = ("cudagraphs", "eager", "inductor", "ipex", "onnxrt", "openvino", "openxla", "tensorrt", "tvm")
"""The backends whose wheel is ``fairlead`` or ``fairlead-<name>``, so that an error can say what to install."""

RESERVED = (*FIRST_PARTY, "conformance", "fairlead", "onnx")
"""Names that no vendor's backend can have: ``fairlead-<name>`` is a wheel of this project, or would read as one."""

_AT_RUN_TIME = "registered at run time"


class Wheel(msgspec.Struct, frozen=True):
    """Where a backend comes from: the wheel and its version, or, for one registered at run time, its class."""

    name: str
    distribution: str
    version: str
    entry_point: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".rstrip() + f" ({self.entry_point})"


class Status(enum.StrEnum):
    """What is known of a backend on this machine; only a probe, as by `doctor`, finds it ready or unavailable."""

    unprobed = "unprobed"
    ready = "ready"
    unavailable = "unavailable"
    broken = "broken"


class BackendInfo(msgspec.Struct, frozen=True):
    """One backend, as its wheel's metadata describe it; ``capabilities`` is None where ``reason`` says it is broken."""

    name: str
    wheel: str
    version: str
    capabilities: Capabilities | None
    status: Status = Status.unprobed
    reason: str = ""


class Registry:
    """The backends that one can name. Methods are safe to call from several threads.

    ``plugins`` may register some; those of installed wheels are loaded only when a name is not found without them.
    """

    def __init__(self, plugins: PluginManager | None = None) -> None:
        self._plugins = plugins or plugin_manager(load=False)
        self._lock = threading.RLock()
        self._entries: Mapping[str, tuple[metadata.EntryPoint, ...]] | None = None
        self._loaded: dict[str, Backend[Any]] = {}
        self._registered: dict[str, Backend[Any]] = {}
        self._announced = False

    def names(self) -> tuple[str, ...]:
        """The names of all backends, sorted. Imports none of them."""
        self._announce()
        return tuple(sorted({*self._wheels(), *self._registered}))

    def wheel(self, name: str) -> Wheel:
        """The wheel that provides ``name``, not imported; raises `BackendNotFoundError` or `BackendConflictError`."""
        if name in self._registered:
            return _registered_wheel(name, self._registered[name])
        found = [_wheel(entry) for entry in self._wheels().get(name, ())]
        if not found:
            raise self._not_found(name)
        if len(found) > 1:
            raise _conflict(name, found)
        return found[0]

    def get(self, name: str) -> Backend[Any]:
        """The backend called ``name``, imported and known to fulfil the contract. Does not probe it.

        Raises `BackendNotFoundError`, `BackendConflictError`, `BackendImportError`, `BackendVersionError` or
        `BackendContractError`.
        """
        self._announce()
        if name not in self._registered and name not in self._wheels():
            self._plugins.load()  # outside of the lock, which plugins that register a backend take while they load
        with self._lock:
            if name in self._registered:
                return self._registered[name]
            if name not in self._loaded:
                self._loaded[name] = self._load(name)
            return self._loaded[name]

    def probe(self, name: str) -> Probe:
        """What the backend says of this machine. A probe that raises, which it must not, is one that says no."""
        backend = self.get(name)
        try:
            return _plain(backend.probe())
        except (Exception, SystemExit) as error:  # foreign code
            return Probe(ok=False, reason=f"its probe failed: {cause(error)}")

    def ready(self, name: str) -> Backend[Any]:
        """The backend called ``name``, usable on this machine; raises what `get` raises, and `BackendNotReadyError`."""
        probe = self.probe(name)
        if not probe.ok:
            raise BackendNotReadyError(
                f"backend {name!r} is not usable here: {probe.reason or 'it gives no reason'}",
                where=str(self.wheel(name)),
                next=f"run: fairlead doctor {name}",
            )
        return self.get(name)

    def register(self, backend: Backend[Any], *, replace: bool = False) -> None:
        """Add a backend that no wheel provides, as from a test or a notebook; ``replace`` one that was added before.

        Raises what `get` raises for a backend that does not fulfil the contract, and `BackendConflictError` for a name
        that is taken.
        """
        where = f"{_AT_RUN_TIME}: {type(backend).__module__}.{type(backend).__qualname__}"
        _contract.check(backend, None, where, "write it for the version that fairlead.backend.API_VERSION names")
        with self._lock:
            taken = [_wheel(entry) for entry in self._wheels().get(backend.name, ())]
            if not replace and backend.name in self._registered:
                taken.append(_registered_wheel(backend.name, self._registered[backend.name]))
            if taken:
                raise _conflict(backend.name, [*taken, _registered_wheel(backend.name, backend)])
            self._registered[backend.name] = backend

    def unregister(self, name: str) -> None:
        """Remove a backend that `register` added; nothing happens where there is none."""
        with self._lock:
            self._registered.pop(name, None)

    def describe(self) -> list[BackendInfo]:
        """All backends, by name, as far as that is known without importing them. Raises nothing for a broken one."""
        return [self._info(name) for name in self.names()]

    def refresh(self) -> None:
        """Forget what was read and imported, so that wheels that were installed meanwhile are found."""
        with self._lock:
            self._entries = None
            self._loaded.clear()

    def _wheels(self) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
        with self._lock:
            if self._entries is None:
                found: dict[str, tuple[metadata.EntryPoint, ...]] = {}
                for entry in metadata.entry_points(group=GROUP):
                    found[entry.name] = (*found.get(entry.name, ()), entry)
                self._entries = found
            return self._entries

    def _announce(self) -> None:
        """Ask plugins for their backends, once; pluggy remembers the question for those that are loaded later."""
        with self._lock:
            if self._announced:
                return
            self._announced = True
            try:
                self._plugins.hook.fairlead_register.call_historic(kwargs={"registry": self})
            except FairleadError:
                raise
            except Exception as error:  # a plugin's
                plugin = self._plugins.culprit("fairlead_register", error) or "unknown"
                raise PluginError(
                    f"plugin {plugin!r} raised in fairlead_register: {cause(error)}",
                    where=self._plugins.source(plugin),
                    next="fix or uninstall the plugin",
                ) from error

    def _load(self, name: str) -> Backend[Any]:
        wheel = self.wheel(name)
        (entry,) = self._wheels()[name]
        try:
            backend = entry.load()
        except (Exception, SystemExit) as error:  # foreign code: whatever its import raises
            raise BackendImportError(
                f"backend {name!r} does not import: {cause(error)}",
                where=str(wheel),
                next=f"pip install --force-reinstall {wheel.distribution}",
            ) from error
        return _contract.check(backend, name, str(wheel), f"pip install --upgrade {wheel.distribution}")

    def _info(self, name: str) -> BackendInfo:
        try:
            wheel = self.wheel(name)
        except BackendConflictError as error:
            return BackendInfo(name, error.where, "", None, Status.broken, error.what)
        if name in self._registered:
            return BackendInfo(name, wheel.distribution, "", self._registered[name].capabilities)
        try:
            capabilities = Capabilities.of_package(wheel.entry_point.partition(":")[0].partition(".")[0])
        except FairleadError as error:
            return BackendInfo(name, wheel.distribution, wheel.version, None, Status.broken, error.what)
        return BackendInfo(name, wheel.distribution, wheel.version, capabilities)

    def _not_found(self, name: str) -> BackendNotFoundError:
        names = self.names()
        if name in FIRST_PARTY:
            advice = f"pip install {_first_party_wheel(name)}"
        elif close := nearest(name, names):
            advice = f"did you mean {close!r}?"
        elif close := nearest(name, FIRST_PARTY):
            advice = f"did you mean {close!r}? pip install {_first_party_wheel(close)}"
        else:
            advice = "use an installed one, or install the wheel that provides it; `fairlead backends` lists them"
        where = f"installed backends: {listed(names)}"
        return BackendNotFoundError(f"no backend is called {name!r}", where=where, next=advice)


def _wheel(entry: metadata.EntryPoint) -> Wheel:
    if entry.dist is None:
        return Wheel(entry.name, "unknown wheel", "", entry.value)
    return Wheel(entry.name, entry.dist.name, entry.dist.version, entry.value)


def _registered_wheel(name: str, backend: Backend[Any]) -> Wheel:
    return Wheel(name, _AT_RUN_TIME, "", f"{type(backend).__module__}:{type(backend).__qualname__}")


def _plain(probe: Probe) -> Probe:
    """The same, of exact types: SDKs give versions as subclasses of str, or as objects, which cannot be encoded."""
    versions = {str(sdk): str(version) for sdk, version in probe.versions.items()}
    return Probe(bool(probe.ok), str(probe.reason), tuple(map(str, probe.devices)), versions)


def _first_party_wheel(name: str) -> str:
    return "fairlead" if name == "eager" else f"fairlead-{name}"


def _conflict(name: str, wheels: list[Wheel]) -> BackendConflictError:
    installed = sorted(w.distribution for w in wheels if w.version)
    if len(installed) == len(wheels):
        advice = f"keep one: pip uninstall {installed[0]}, or {installed[1]}"
    else:
        advice = "register it under another name" + ("" if installed else ", or with replace=True")
    return BackendConflictError(
        f"{len(wheels)} sources provide a backend called {name!r}",
        where="; ".join(map(str, sorted(wheels, key=str))),
        next=advice,
    )


registry = Registry()
"""The default registry: the backends of this process."""

names = registry.names
wheel = registry.wheel
get = registry.get
probe = registry.probe
ready = registry.ready
register = registry.register
describe = registry.describe
refresh = registry.refresh
