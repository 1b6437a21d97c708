"""The suite under pytest: an item for each case, the report at the end, and nothing for those who do not ask."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_conformance import Status
from fairlead_conformance._report import read_report

from .conftest import environment
from .wheels import install

NAMES = ("behave", "mismatch", "decline", "exit_at_once", "leave_files")

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]

ASKED = ("--pyargs", "fairlead_conformance", "--backend=hostile")


@pytest.fixture
def pytest_in(tmp_path: Path) -> Pytest:
    """Run pytest in ``tmp_path``, with the plugin as its entry point would load it."""
    install(tmp_path / "site", NAMES)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "fairlead_conformance._plugin", "-v", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env=environment(tmp_path) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )

    return run


def test_each_case_is_an_item_and_the_report_has_all(pytest_in: Pytest, tmp_path: Path) -> None:
    ended = pytest_in(*ASKED, "--report=out", "--seed=5", "--workers=2")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    for line in (
        "test_cases.py::acts/behave/f32/s000 PASS_NATIVE",
        "test_cases.py::acts/decline/f32/s002 DECLINED",
        "FAIL_MISMATCH (values): output 0 is wrong",
        "its process ended with exit status 3",
        "last words",
        "2 failed, 2 passed, 1 declined",
    ):
        assert line in ended.stdout
    report = read_report(tmp_path / "out/report.json")
    assert {status: n for status, n in report.counts.items() if n} == {
        Status.PASS_NATIVE: 2,
        Status.DECLINED: 1,
        Status.FAIL_MISMATCH: 1,
        Status.FAIL_CRASH: 1,
    }
    assert (report.run.seed, report.backend.versions) == (5, {"sdk": "1.2"})


def test_drawn_graphs_follow_the_items(pytest_in: Pytest, tmp_path: Path) -> None:
    ended = pytest_in(*ASKED, "--report=out", "--seed=5", "--workers=1", "--fuzz=1s", "-k", "behave")
    assert (ended.returncode, "graphs of seed 5, 2 failed" in ended.stdout) == (1, True), ended.stdout + ended.stderr
    assert len(read_report(tmp_path / "out/report.json").beyond) == 2


def test_under_xdist_the_results_come_together(pytest_in: Pytest, tmp_path: Path) -> None:
    ended = pytest_in("-p", "xdist.plugin", "-n", "2", *ASKED, "--report=out")
    assert "2 failed, 2 passed, 1 declined" in ended.stdout, ended.stdout + ended.stderr
    assert {line[:5] for line in ended.stdout.splitlines() if "test_cases.py::acts/" in line} >= {"[gw0]", "[gw1]"}
    report = read_report(tmp_path / "out/report.json")
    assert report.counts[Status.NOT_RUN] == 0
    assert report.backend.versions == {"sdk": "1.2"}
    assert list(tmp_path.glob("fairlead-conformance-*")) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-k", "behave"), "not all cases were selected: -k behave"),
        (("-x",), "not all cases were selected: -x 1"),
        (("--shard=2/2",), "shards missing: 1/2"),
    ],
)
def test_what_leaves_cases_out_is_not_complete(
    pytest_in: Pytest, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    pytest_in(*ASKED, "--report=out", "--workers=1", "--isolate=none", *arguments)
    report = read_report(tmp_path / "out/report.json")
    assert reason in report.reasons
    assert report.counts[Status.NOT_RUN] > 0


def test_a_run_goes_on_where_it_was(pytest_in: Pytest, tmp_path: Path) -> None:
    pytest_in(*ASKED, "--report=out", "--isolate=none", "-k", "behave or decline")
    ended = pytest_in(*ASKED, "--report=out", "--isolate=none", "--resume", "-k", "not exit_at_once")
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert read_report(tmp_path / "out/report.json").counts[Status.NOT_RUN] == 1


def test_a_known_failure_is_no_failure_and_a_fault_of_the_file_is(pytest_in: Pytest, tmp_path: Path) -> None:
    entry = """
        [[failure]]
        id = "acts/mismatch/f32/{sample}"
        status = "FAIL_MISMATCH"
        reason = "wrong"
        issue = "https://example.org/1"
        since = 2026-01-01
        expires = 2999-01-01
        """
    path = tmp_path / "site/vendor_hostile/known-failures.toml"
    path.write_text(entry.format(sample="s001"))
    asked = (*ASKED, "--isolate=none", "-k", "mismatch or behave")
    ended = pytest_in(*asked)
    assert (ended.returncode, "1 passed, 3 deselected, 1 known to fail" in ended.stdout) == (0, True), ended.stdout
    path.write_text(entry.format(sample="s001") + entry.format(sample="s009"))
    ended = pytest_in(*asked)
    assert (ended.returncode, "s009: no case of the suite is called so" in ended.stdout) == (1, True)


def test_without_a_backend_it_says_what_is_missing(pytest_in: Pytest) -> None:
    ended = pytest_in("--pyargs", "fairlead_conformance")
    assert ended.returncode == 4
    assert "--backend=NAME (or --fairlead-backend=NAME) says which backend is to be judged" in ended.stderr


THEIRS = """
def pytest_addoption(parser):
    parser.addoption("--backend", default="theirs")
    parser.addoption("--timeout", type=int, default=3)

def pytest_report_header(config):
    return f"theirs: {config.getoption('backend')}"
"""


def test_who_does_not_ask_keeps_their_options(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(THEIRS)
    (tmp_path / "test_theirs.py").write_text("def test_nothing():\n    pass\n")
    ended = pytest_in("--backend=mine", "test_theirs.py")
    assert (ended.returncode, "theirs: mine" in ended.stdout) == (0, True)
    assert "fairlead" not in pytest_in("--help").stdout


def test_who_asks_beside_such_options_uses_the_longer_names(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(THEIRS)
    asked = ("--pyargs", "fairlead_conformance", "--fairlead-backend=hostile", "--backend=mine")
    ended = pytest_in(*asked, "--fairlead-timeout=9s", "--level=L1", "--isolate=none", "-k", "behave")
    assert ("theirs: mine" in ended.stdout, "1 passed" in ended.stdout) == (True, True), ended.stdout + ended.stderr


LIGHT = "import sys, fairlead_conformance._plugin; print(*({'torch', 'msgspec', 'rich', 'psutil'} & set(sys.modules)))"


def test_the_plugin_costs_those_who_do_not_ask_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""
