"""What ``fairlead doctor`` runs in a process of its own, once for each backend and once for the plugins.

``python -m fairlead._cli.probe backend NAME FILE`` and ``... plugins FILE`` write their finding to FILE as JSON.
Whatever the vendor's code does to its process (a crash, ``os._exit``, text on stdout), the parent reads a whole
finding or none.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from fairlead import _hook_calls
from fairlead._registry import Status, registry
from fairlead.errors import FairleadError
from fairlead.hooks import PluginInfo, Report, plugin_manager


class BackendFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe found out about one backend. ``next`` says what to do where it is not ready."""

    status: Status
    reason: str = ""
    next: str = ""
    devices: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class PluginsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The plugins, what they add to the report, and what went wrong in between."""

    plugins: tuple[PluginInfo, ...] = ()
    sections: dict[str, dict[str, str]] = {}
    problem: str = ""


def probe_backend(name: str) -> BackendFinding:
    """Import and probe one backend, in this process."""
    try:
        probe = registry.probe(name)
    except FairleadError as error:
        return BackendFinding(status=Status.broken, reason=error.what, next=error.next)
    if probe.ok:
        return BackendFinding(status=Status.ready, devices=probe.devices, versions=probe.versions)
    return BackendFinding(status=Status.unavailable, reason=probe.reason, versions=probe.versions)


def probe_plugins() -> PluginsFinding:
    """Load all plugins and ask them for their sections, in this process."""
    report, problem = Report(), ""
    try:
        _hook_calls.report(report)
    except FairleadError as error:
        problem = str(error)
    found = plugin_manager(load=False).found
    return PluginsFinding(plugins=found, sections={t: dict(r) for t, r in report.sections.items()}, problem=problem)


def main(arguments: list[str]) -> None:
    """Write the finding whole or not at all: to a file beside FILE, which then takes its name."""
    *what, file = arguments
    finding = probe_plugins() if what == ["plugins"] else probe_backend(what[1])
    unfinished = Path(file + ".part")
    unfinished.write_bytes(msgspec.json.encode(finding))
    unfinished.replace(file)


if __name__ == "__main__":
    main(sys.argv[1:])
