"""Whatever a backend does to its process costs the case in which it does it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from fairlead_conformance import Result, Status
from fairlead_conformance._report import read_report

from .conftest import Conform, left_behind

CRASHES = {
    "segfault": "its process was ended by SIGSEGV in vendor_hostile/__init__.py:8 segfault",
    "segfault_deep_down": "its process was ended by SIGSEGV in vendor_hostile/__init__.py:13 segfault_deep_down",
    "segfault_beside_threads": "SIGSEGV in vendor_hostile/__init__.py:18 segfault_beside_threads",
    "abort_in_a_native_thread": "SIGABRT in a thread of its own, while Python was in vendor_hostile/__init__.py:23",
    "exit_at_once": "its process ended with exit status 3",
    "allocate": "memory: its process grew to",
    "leave": "SystemExit escaped",
    "interrupt": "KeyboardInterrupt escaped",
    "close_descriptors": "it closed the descriptors of its process",
    "kill_the_parent": "it killed the process above it",
    "kill_the_group": "its process was ended by SIGKILL",
    "abandon_a_grandchild": "its process was ended by SIGSEGV",
    "scribble": "it wrote into a descriptor that is not its own",
}

SURVIVES = ("flood", "leave_children", "return_twice", "leave_files", "behave")


def test_what_a_backend_does_to_its_process_costs_that_case_alone(
    conform: Conform, logged: Callable[[], dict[str, Result]], tmp_path: Path
) -> None:
    names = (*CRASHES, "hang", *SURVIVES)
    ended = conform(names, "--timeout", "3s", "--memory", "1g", "--workers", "2")
    results = logged()
    assert ended.returncode == 1, ended.stderr
    assert set(results) == set(names)
    assert {name for name in names if results[name].status is Status.FAIL_CRASH} == set(CRASHES)
    assert {name: results[name].detail for name in CRASHES if CRASHES[name] not in results[name].detail} == {}
    assert results["hang"].status is Status.FAIL_TIMEOUT
    assert [results[name].status for name in SURVIVES] == [Status.PASS_NATIVE] * len(SURVIVES)
    assert "last words" in results["exit_at_once"].output
    for name in ("segfault", "segfault_deep_down", "segfault_beside_threads"):  # Python's own account of where it was
        assert f"in {name}\n" in results[name].output
    assert _left(tmp_path) == []
    assert list(tmp_path.glob("fairlead-conformance-*")) == []


def test_a_process_for_each_case(conform: Conform, logged: Callable[[], dict[str, Result]], tmp_path: Path) -> None:
    names = ("be_first", "be_first", "segfault", "be_first")
    conform(names, "--isolate", "case", "--workers", "1")
    statuses = [result.status for result in read_report(tmp_path / "out/report.json").results]
    assert statuses == [Status.PASS_NATIVE, Status.PASS_NATIVE, Status.FAIL_CRASH, Status.PASS_NATIVE]
    assert logged()["segfault"].detail == "its process was ended by SIGSEGV in vendor_hostile/__init__.py:8 segfault"

    conform(names, "--isolate", "auto", "--workers", "1", "-k", "be_first")
    statuses = [result.status for result in read_report(tmp_path / "out/report.json").results]
    assert statuses == [Status.PASS_NATIVE, Status.HARNESS_ERROR, Status.NOT_RUN, Status.HARNESS_ERROR]


def test_memory_that_many_cases_have_filled_costs_none_of_them(conform: Conform, tmp_path: Path) -> None:
    """A process in which a case outgrows its memory after others is replaced, and the case has one of its own."""
    conform(("hoard",) * 6, "--workers", "2", "--memory", "1500m")
    statuses = [result.status for result in read_report(tmp_path / "out/report.json").results]
    assert statuses == [Status.PASS_NATIVE] * 6


def test_a_crash_of_several_cases_together_costs_none_of_them(
    conform: Conform, logged: Callable[[], dict[str, Result]], tmp_path: Path
) -> None:
    names = ("beside_one", "segfault", "beside_another", "behave")
    ended = conform(names, "--bundle", "4", "--workers", "1")
    assert ended.returncode == 1, ended.stderr
    assert (tmp_path / "tried").exists()  # the joint graph, which ended its process
    assert {name: result.status for name, result in logged().items()} == {
        name: Status.FAIL_CRASH if name == "segfault" else Status.PASS_NATIVE for name in names
    }
    report = read_report(tmp_path / "out/report.json")
    assert "cases were judged in bundles of up to 4, not each by itself" in report.reasons


def test_what_compilers_keep_in_temporary_files_outlives_a_worker(
    conform: Conform, logged: Callable[[], dict[str, Result]]
) -> None:
    conform(("fill_a_cache", "segfault", "find_the_cache"), "--workers", "1")
    assert {name: result.status for name, result in logged().items()} == {
        "fill_a_cache": Status.PASS_NATIVE,
        "segfault": Status.FAIL_CRASH,
        "find_the_cache": Status.PASS_NATIVE,
    }


def test_a_compiler_that_is_ended_may_take_away_its_half_written_file(
    conform: Conform, logged: Callable[[], dict[str, Result]]
) -> None:
    conform(("hang_over_half_a_file", "find_no_half_file"), "--workers", "1", "--timeout", "5s")
    assert logged()["hang_over_half_a_file"].status is Status.FAIL_TIMEOUT
    assert logged()["find_no_half_file"].status is Status.PASS_NATIVE


def test_the_beginning_and_costly_cases_alone_are_given_more_time(conform: Conform, tmp_path: Path) -> None:
    conform(("wait", "wait", "costly_wait"), "--workers", "1", "--timeout", "2s", wait="4")
    statuses = [result.status for result in read_report(tmp_path / "out/report.json").results]
    assert statuses == [Status.PASS_NATIVE, Status.FAIL_TIMEOUT, Status.PASS_NATIVE]


def _left(tmp_path: Path) -> list[str]:
    """Processes that a case started, and that are still there."""
    wanted = ["sleep", left_behind(tmp_path)]
    return [str(process) for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == wanted]
