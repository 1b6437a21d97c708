"""What is told of a run: ``report.json`` and its schema, and the same for CI, for a terminal and for a browser."""

from fairlead_conformance._report._data import Figure, Judged, KnownFailure, Machine, Pack, Report, Run, Shard, Suite
from fairlead_conformance._report._digest import digest, installed_suite
from fairlead_conformance._report._files import read_report, write_report
from fairlead_conformance._report._make import report_of

__all__ = [
    "Figure",
    "Judged",
    "KnownFailure",
    "Machine",
    "Pack",
    "Report",
    "Run",
    "Shard",
    "Suite",
    "digest",
    "installed_suite",
    "read_report",
    "report_of",
    "write_report",
]
