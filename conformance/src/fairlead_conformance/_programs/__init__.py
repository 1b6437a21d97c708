"""Programs through `fairlead.compile`: each is a check with one difficulty, whose calls are compared with eager's."""

from fairlead_conformance._programs._check import Check, cases_of, check, checks_of, run_check
from fairlead_conformance._programs._raised import attributed
from fairlead_conformance._programs._trial import Trial
from fairlead_conformance._programs._twin import Twin

__all__ = ["Check", "Trial", "Twin", "attributed", "cases_of", "check", "checks_of", "run_check"]
