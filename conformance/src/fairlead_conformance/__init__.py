"""The conformance suite: what a backend wheel has to do right, as cases that run anywhere, and reports for others.

A `Case` belongs to a family. `execute` runs one against a `Subject`, a backend on a device, and gives a
`Result` with exactly one `Status`. Everything else selects cases, spreads them over processes, and tells of results.
The suite names no backend: first-party and vendors' wheels are found by name, through Fairlead's registry.
"""

from fairlead_conformance._case import Case, Level
from fairlead_conformance._execute import execute
from fairlead_conformance._families import manifest
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["Case", "Declined", "Failed", "Level", "Observation", "Result", "Status", "Subject", "execute", "manifest"]
