"""A backend that cannot be loaded costs each case once, and not a worker for each."""

from __future__ import annotations

from collections.abc import Callable

from fairlead_conformance import Result, Status

from .conftest import Conform
from .wheels import BACKEND


def names(count: int) -> tuple[str, ...]:
    return tuple(f"case{n}" for n in range(count))


def test_a_backend_whose_import_ends_the_process_is_not_imported_for_each_case(
    conform: Conform, logged: Callable[[], dict[str, Result]]
) -> None:
    ended = conform(names(300), "--workers", "1", source="import os\nprint('no licence', flush=True)\nos._exit(9)\n")
    assert ended.returncode == 1
    results = logged()
    assert {result.status for result in results.values()} == {Status.FAIL_IMPORT}
    assert len(results) == 300
    assert {result.detail for result in results.values()} == {"importing it: its process ended with exit status 9"}
    assert "no licence" in results["case0"].output


def test_a_backend_that_raises_when_it_is_imported_says_so_in_each_case(
    conform: Conform, logged: Callable[[], dict[str, Result]]
) -> None:
    conform(names(300), "--workers", "1", source="raise OSError('libacme.so: not found')\n")
    assert {result.status for result in logged().values()} == {Status.FAIL_IMPORT}
    assert "libacme.so: not found" in logged()["case0"].detail


def test_a_backend_that_ends_its_process_in_every_case_ends_the_run(
    conform: Conform, logged: Callable[[], dict[str, Result]]
) -> None:
    source = BACKEND.replace("globals().get(graph.name, behave)()", "os._exit(3)")
    ended = conform(names(12), "--losses", "3", "--workers", "1", source=source)
    assert (ended.returncode, len(logged())) == (1, 3)
    assert "9 NOT_RUN" in ended.stdout
