"""Whose failure an exception is that ends a check."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fairlead.errors import CompileError
from fairlead_conformance._observation import Failed
from fairlead_conformance._status import Status

__all__ = ["attributed"]


@contextlib.contextmanager
def attributed() -> Iterator[None]:
    """Within, only the compiled program is called, or its backward: what is raised is the backend's, as `Failed`.

    Anywhere else in a check it is a defect of the suite. What a Part raises is mostly rescued by eager and judged by
    the placement; what comes here is what torch raises of its results, such as of a saved tensor written since.

    >>> with attributed():
    ...     raise RuntimeError("no kernel")
    Traceback (most recent call last):
    fairlead_conformance._observation.Failed: RuntimeError: no kernel
    """
    try:
        yield
    except Failed:
        raise
    except Exception as error:
        compiling = isinstance(error, CompileError)
        status, check = (Status.FAIL_COMPILE, "compiles") if compiling else (Status.FAIL_RUN, "runs")
        raise Failed(status, check, f"{type(error).__name__}: {error}".splitlines()[0]) from error
