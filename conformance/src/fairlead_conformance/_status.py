"""What becomes of a case: exactly one of these. There is no skip, so the counts add up to the number of cases."""

from __future__ import annotations

import enum

__all__ = ["Status"]


class Status(enum.StrEnum):
    """The outcome of one case, as it stands in a report."""

    PASS_NATIVE = "PASS_NATIVE"
    """Right, and computed by the backend itself."""
    PASS_EXTERN = "PASS_EXTERN"
    """Right, with torch kernels that the backend's capabilities declare in ``extern_aten``."""
    DECLINED = "DECLINED"
    """Refused when it was asked, before anything was compiled, with a reason."""
    KNOWN_FAIL = "KNOWN_FAIL"
    """Fails as the backend's file of known failures says."""
    FAIL_IMPORT = "FAIL_IMPORT"
    FAIL_COMPILE = "FAIL_COMPILE"
    FAIL_RUN = "FAIL_RUN"
    FAIL_MISMATCH = "FAIL_MISMATCH"
    """Wrong values."""
    FAIL_DTYPE = "FAIL_DTYPE"
    FAIL_SHAPE = "FAIL_SHAPE"
    FAIL_STRIDE = "FAIL_STRIDE"
    FAIL_ALIAS = "FAIL_ALIAS"
    """Results that share memory with each other, with an input or with a later call's, where eager's do not."""
    FAIL_MUTATION = "FAIL_MUTATION"
    """An input written that is not to be, or not written that is."""
    FAIL_RNG = "FAIL_RNG"
    FAIL_GRAD = "FAIL_GRAD"
    FAIL_STATE = "FAIL_STATE"
    """Something of the process changed: default dtype, threads, grad mode, environment, random state."""
    FAIL_LEAK = "FAIL_LEAK"
    FAIL_ERRORS = "FAIL_ERRORS"
    """A bad call accepted, or refused with something else than a clear error."""
    FAIL_FALLBACK = "FAIL_FALLBACK"
    """Computed by somebody else, undeclared: torch's kernels, another compiler, another process."""
    FAIL_OVERCLAIM = "FAIL_OVERCLAIM"
    """Declared in the capabilities, and declined."""
    FAIL_NONDETERMINISM = "FAIL_NONDETERMINISM"
    FAIL_TIMEOUT = "FAIL_TIMEOUT"
    FAIL_CRASH = "FAIL_CRASH"
    FAIL_XPASS = "FAIL_XPASS"
    """Listed as a known failure, and passes."""
    FAIL_VACUOUS = "FAIL_VACUOUS"
    """Nothing was compared."""
    HARNESS_ERROR = "HARNESS_ERROR"
    """A defect of the suite itself; never counts for or against a backend, and makes the run incomplete."""
    NOT_RUN = "NOT_RUN"

    @property
    def passed(self) -> bool:
        return self in (Status.PASS_NATIVE, Status.PASS_EXTERN)

    @property
    def failed(self) -> bool:
        return self.startswith("FAIL_")
