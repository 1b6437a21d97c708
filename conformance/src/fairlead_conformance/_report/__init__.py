"""What is told of a run: ``report.json`` and its schema, and the same for CI, for a terminal and for a browser."""

from fairlead_conformance._report._data import Figure, Judged, KnownFailure, Machine, Pack, Report, Run, Shard, Suite
from fairlead_conformance._report._digest import digest, installed_suite
from fairlead_conformance._report._files import read_report, write_report
from fairlead_conformance._report._make import report_of
from fairlead_conformance._report._schema import published
from fairlead_conformance._report._summary import headline
from fairlead_conformance._report._verify import Problem, problems, verify

__all__ = [
    "Figure",
    "Judged",
    "KnownFailure",
    "Machine",
    "Pack",
    "Problem",
    "Report",
    "Run",
    "Shard",
    "Suite",
    "digest",
    "headline",
    "installed_suite",
    "problems",
    "published",
    "read_report",
    "report_of",
    "verify",
    "write_report",
]
