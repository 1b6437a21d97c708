"""What is told of a run: ``report.json`` and its schema, and the same for CI, for a terminal and for a browser."""

from fairlead_conformance._report._badge import to_badge
from fairlead_conformance._report._data import Figure, Judged, KnownFailure, Machine, Pack, Report, Run, Shard, Suite
from fairlead_conformance._report._diff import Change, Difference, differences, facts_changed
from fairlead_conformance._report._digest import digest, installed_suite
from fairlead_conformance._report._files import read_report, write_report
from fairlead_conformance._report._make import report_of
from fairlead_conformance._report._merge import merged
from fairlead_conformance._report._schema import published
from fairlead_conformance._report._summary import headline
from fairlead_conformance._report._verify import Problem, problems, verify

__all__ = [
    "Change",
    "Difference",
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
    "differences",
    "digest",
    "facts_changed",
    "headline",
    "installed_suite",
    "merged",
    "problems",
    "published",
    "read_report",
    "report_of",
    "to_badge",
    "verify",
    "write_report",
]
