"""Runs many cases: chooses them, spreads them over processes that may die, keeps the results, and reports.

`Settings` say what is asked for. A `Session` knows the cases, the results so far, and the report; `pool_of` gives
what the results come from. The command line and the pytest plugin are two small programs over these.
"""

from fairlead_conformance._run._again import differing, sample
from fairlead_conformance._run._fuzz import fuzzed
from fairlead_conformance._run._log import seed_of
from fairlead_conformance._run._session import Session, pool_of
from fairlead_conformance._run._settings import Isolation, Settings, Shard, duration, size
from fairlead_conformance._run._summary import is_red, summary

__all__ = [
    "Isolation",
    "Session",
    "Settings",
    "Shard",
    "differing",
    "duration",
    "fuzzed",
    "is_red",
    "pool_of",
    "sample",
    "seed_of",
    "size",
    "summary",
]
