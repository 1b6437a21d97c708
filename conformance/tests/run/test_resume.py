"""A run that was interrupted goes on where it was, with the same seed, or says why it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from fairlead_conformance import Result, Status
from fairlead_conformance._report import read_report

from .conftest import Conform, environment
from .wheels import install

NAMES = ("behave", "mismatch", "decline", "wait", "leave")


def heeds_ctrl_c() -> None:
    """A shell starts what it puts into the background, as continuous integration may this, deaf to it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(tmp_path: Path, how: signal.Signals) -> tuple[int, str]:
    """The exit status and the errors of a run that gets the signal while its fourth case runs, on one worker."""
    install(tmp_path / "site", NAMES)
    command = [sys.executable, "-m", "fairlead_conformance", "run", "hostile", "--report", "out", "--workers", "1"]
    run = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path) | {"WAIT": "1000"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_ctrl_c,
    )
    log = tmp_path / "out/results.jsonl"
    end = time.monotonic() + 100
    while time.monotonic() < end and not (log.exists() and log.read_bytes().count(b"\n") == 3):
        time.sleep(0.05)
    assert log.read_bytes().count(b"\n") == 3
    workers = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(how)
    _, errors = run.communicate(timeout=60)
    _, alive = psutil.wait_procs(workers, 10)
    assert (len(workers) >= 2, alive) == (True, [])
    return run.returncode, errors


def test_ctrl_c_leaves_a_run_that_can_be_resumed(
    conform: Conform, logged: Callable[[], dict[str, Result]], tmp_path: Path
) -> None:
    status, errors = interrupted(tmp_path, signal.SIGINT)
    assert (status, "2 cases are left; go on with the same command and --resume" in errors) == (2, True), errors
    assert list(tmp_path.glob("fairlead-conformance-*")) == []
    before = read_report(tmp_path / "out/report.json")
    assert (before.complete, before.counts[Status.NOT_RUN]) == (False, 2)
    assert "interrupted" in before.reasons

    resumed = conform(NAMES, "--resume", "--workers", "1")
    assert resumed.returncode == 1, resumed.stderr
    assert {name: result.status for name, result in logged().items()} == {
        "behave": Status.PASS_NATIVE,
        "mismatch": Status.FAIL_MISMATCH,
        "decline": Status.DECLINED,
        "wait": Status.PASS_NATIVE,
        "leave": Status.FAIL_CRASH,
    }
    after = read_report(tmp_path / "out/report.json")
    assert (after.run.seed, after.counts[Status.NOT_RUN]) == (before.run.seed, 0)


def test_a_session_that_is_killed_loses_no_result_and_leaves_no_process(
    conform: Conform, logged: Callable[[], dict[str, Result]], tmp_path: Path
) -> None:
    interrupted(tmp_path, signal.SIGKILL)
    with (tmp_path / "out/results.jsonl").open("ab") as log:
        log.write(b'{"id":"acts/wait/f32/s003","sta')  # a line that the end of the machine cut off
    conform(NAMES, "--resume", "--isolate", "none", "-k", "not leave")
    assert set(logged()) == {"behave", "mismatch", "decline", "wait"}


def test_a_run_of_other_circumstances_is_not_resumed(conform: Conform, tmp_path: Path) -> None:
    conform(NAMES, "--isolate", "none", "-k", "behave", "--seed", "3")
    other = conform(NAMES, "--isolate", "none", "--resume", "--seed", "4")
    assert (other.returncode, other.stdout) == (2, "")
    assert "the run cannot be resumed: its seed was 3, and is now 4" in other.stderr
    os.utime(tmp_path / "site/vendor_hostile/__init__.py", ns=(1, 1))
    other = conform(NAMES, "--isolate", "none", "--resume")
    assert "the run cannot be resumed: its content was" in other.stderr


def test_the_figures_come_as_json_and_the_cases_as_a_list(conform: Conform) -> None:
    figures = conform(NAMES, "--isolate", "none", "-k", "behave or decline", "--json", "--seed", "7")
    found = msgspec.json.decode(figures.stdout)
    assert (figures.returncode, found["run"]["seed"], found["complete"]) == (0, 7, False)
    assert (found["counts"]["PASS_NATIVE"], found["counts"]["DECLINED"], found["counts"]["NOT_RUN"]) == (1, 1, 3)
    listed = conform(NAMES, "--collect", "-k", "behave or leave")
    assert listed.stdout.split() == ["acts/behave/f32/s000", "acts/leave/f32/s004"]
