"""The conformance suite: what a backend wheel has to do right, as cases that run anywhere, and reports for others.

A `Case` belongs to a family. `execute` runs one against a `Subject`, a backend on a device, and gives a
`Result` with exactly one `Status`. Everything else selects cases, spreads them over processes, and tells of results.
The suite names no backend: first-party and vendors' wheels are found by name, through Fairlead's registry.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead_conformance._case import Case, Level
    from fairlead_conformance._execute import execute
    from fairlead_conformance._families import manifest
    from fairlead_conformance._observation import Declined, Failed, Observation
    from fairlead_conformance._result import Result
    from fairlead_conformance._status import Status
    from fairlead_conformance._subject import Subject

__all__ = ["Case", "Declined", "Failed", "Level", "Observation", "Result", "Status", "Subject", "execute", "manifest"]

_MODULES = {
    "_case": ("Case", "Level"),
    "_execute": ("execute",),
    "_families": ("manifest",),
    "_observation": ("Declined", "Failed", "Observation"),
    "_result": ("Result",),
    "_status": ("Status",),
    "_subject": ("Subject",),
}


def __getattr__(name: str) -> object:
    """A name, from its module: every pytest and every ``fairlead --help`` imports this package, and needs no torch."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
