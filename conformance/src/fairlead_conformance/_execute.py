"""Runs one case against one backend: whatever happens becomes a `Result`."""

from __future__ import annotations

import contextlib
import time

from fairlead.errors import RegistryError
from fairlead_conformance._case import Case
from fairlead_conformance._device_names import kind_of
from fairlead_conformance._families import family
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["exact_products", "execute", "lacking"]


def execute(case: Case, subject: Subject) -> Result:
    """The result of one case, in this process. Never raises: what the suite itself does wrong is HARNESS_ERROR."""
    seen = Observation()
    start = time.perf_counter()
    status, check, detail, declined = Status.PASS_NATIVE, "", "", dict[str, str]()
    try:
        if reasons := lacking(case, subject):
            raise Declined(reasons)
        with exact_products(subject.place):
            family(case.family).run(case, subject, seen)
        if seen.extern:
            status = Status.PASS_EXTERN
        if not seen.compared:
            status, check, detail = Status.FAIL_VACUOUS, "compared", "nothing was compared"
    except Declined as refusal:
        status, detail, declined = Status.DECLINED, str(refusal), refusal.reasons
    except Failed as failure:
        status, check, detail = failure.status, failure.check, failure.detail
    except RegistryError as error:
        status, check, detail = Status.FAIL_IMPORT, "loads", _first_line(error)
    except Exception as error:
        status, check, detail = Status.HARNESS_ERROR, "", _first_line(error)
    return Result(
        id=case.id,
        status=status,
        detail=detail,
        check=check,
        native=tuple(sorted(seen.native)),
        extern=tuple(sorted(seen.extern)),
        declined=declined,
        compared=seen.compared,
        seconds=time.perf_counter() - start,
    )


def exact_products(place: str) -> contextlib.AbstractContextManager[None]:
    """Within, torch's products of float32 on ``place`` are of float32. Torch is imported where they are not anyway."""
    if kind_of(place) != "cuda":
        return contextlib.nullcontext()
    from fairlead_conformance._device import exact_convolutions

    return exact_convolutions()


def lacking(case: Case, subject: Subject) -> dict[str, str]:
    """What the backend's capabilities lack of what the case needs."""
    capabilities = subject.capabilities
    needs = [need for need in case.needs if not getattr(capabilities, need)]
    return {
        **dict.fromkeys(needs, "not among the backend's capabilities"),
        **{f"dtype {d}": "not among the backend's dtypes" for d in case.dtypes if d not in capabilities.dtypes},
    }


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().splitlines()[0]
