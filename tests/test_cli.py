"""The command line, as a user runs it: in a process of its own, with wheels that do their worst."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import BACKEND, Run, Site

PROBE = 'return Probe(ok=True, devices=("cpu",), versions={"sdk": "1.2"})'


def backend(name: str, probe: str) -> str:
    """A backend whose probe runs the lines ``probe``."""
    lines = "\n        ".join(probe.splitlines())
    return BACKEND.format(name=name).replace(PROBE, lines)


CRASH = "import ctypes\nctypes.string_at(0)"
HANG = "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\ntime.sleep(600)"
LEAVE = "import os\nprint('licence expired', flush=True)\nos._exit(0)"


def rows(output: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(output)["backends"]}


def test_the_version(run: Run) -> None:
    result = run("-m", "fairlead", "--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, "fairlead 0.1.0\n", "")


@pytest.mark.parametrize("command", [["--version"], ["--help"], ["backends"], ["backends", "--json"]])
def test_quick_commands_do_not_wait_for_torch(run: Run, command: list[str]) -> None:
    source = "import sys, atexit; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
    result = run("-c", source + f"from fairlead._cli import main\nsys.argv[1:] = {command!r}\nmain()")
    assert (result.returncode, result.stderr) == (0, "False\n")


def test_backends_lists_what_is_installed(run: Run, site: Site) -> None:
    site.backend("acme")
    site.backend("broken", "raise RuntimeError", capabilities="?")
    result = run("-m", "fairlead", "backends")
    assert result.returncode == 0
    lines = {words[0]: words[1:] for line in result.stdout.splitlines() if (words := line.split())}
    assert lines["acme"] == ["vendor-acme", "2.0", "unprobed", "cpu", "f32"]
    assert lines["broken"] == ["vendor-broken", "2.0", "broken"]
    assert lines["broken:"][:4] == ["no", "valid", "capabilities.toml:", "Invalid"]
    assert lines["eager"][:3] == ["fairlead", "0.1.0", "unprobed"]


def test_backends_as_json(run: Run, site: Site) -> None:
    site.backend("acme")
    found = json.loads(run("-m", "fairlead", "backends", "--json").stdout)
    (acme,) = (row for row in found if row["name"] == "acme")
    assert acme["wheel"] == "vendor-acme"
    assert acme["status"] == "unprobed"
    assert acme["capabilities"]["devices"] == ["cpu"]


def test_a_broken_wheel_costs_one_row(run: Run, site: Site) -> None:
    site.backend("crash", backend("crash", CRASH))
    site.backend("leave", backend("leave", LEAVE))
    site.backend("raise", "raise RuntimeError('no')")
    site.backend("missing", backend("missing", 'return Probe(ok=False, reason="no device")'))
    site.backend("good")
    result = run("-m", "fairlead", "doctor", "--json")
    assert result.returncode == 0
    found = rows(result.stdout)
    assert found["good"]["status"] == "ready"
    assert found["good"]["versions"] == {"sdk": "1.2"}
    assert found["eager"]["status"] == "ready"
    assert (found["crash"]["status"], found["crash"]["reason"]) == ("broken", "its probe crashed the process (SIGSEGV)")
    assert found["crash"]["next"] == "report it to the makers of vendor-crash"
    assert found["leave"]["reason"] == "its probe ended the process (exit status 0): licence expired"
    assert found["raise"]["reason"] == "backend 'raise' does not import: RuntimeError: no"
    assert found["raise"]["next"] == "pip install --force-reinstall vendor-raise"
    assert (found["missing"]["status"], found["missing"]["reason"]) == ("unavailable", "no device")


def test_a_probe_that_hangs_is_ended_with_the_processes_that_it_started(run: Run, site: Site) -> None:
    site.backend("hang", backend("hang", HANG))
    result = run("-m", "fairlead", "doctor", "hang", "--json", "--timeout", "3")
    assert result.returncode == 1
    assert rows(result.stdout)["hang"]["reason"] == "its probe gave no answer within 3 s"


def test_doctor_tells_by_its_exit_status_whether_one_backend_is_ready(run: Run, site: Site) -> None:
    site.backend("good")
    site.backend("missing", backend("missing", 'return Probe(ok=False, reason="no device")'))
    assert run("-m", "fairlead", "doctor", "good").returncode == 0
    result = run("-m", "fairlead", "doctor", "missing")
    assert result.returncode == 1
    assert "missing: no device" in result.stdout


def test_doctor_shows_versions_plugins_and_the_environment(run: Run, site: Site) -> None:
    site.backend("good")
    hook = "from fairlead.hooks import hookimpl\n@hookimpl\n"
    site.plugin("typo", hook + "def fairlead_raport(report): pass")
    site.plugin("store", hook + "def fairlead_report(report): report.add('store', {'entries': '3'})")
    result = run("-m", "fairlead", "doctor", "good", "--json", FAIRLEAD_BACKEND="good", FAIRLEAD_STRICT="1")
    report = json.loads(result.stdout)
    assert set(report["system"]) == {"fairlead", "python", "torch", "platform", "cpus"}
    assert report["environment"] == {"FAIRLEAD_BACKEND": "good", "FAIRLEAD_STRICT": "1"}
    errors = {plugin["name"]: plugin["error"] for plugin in report["plugins"]["plugins"]}
    assert errors["store"] == ""
    assert errors["typo"] == "plugin 'typo' implements the hook fairlead_raport(report), which does not exist"
    result = run("-m", "fairlead", "doctor", "good")
    assert "plugin-store 1.5: ready" in result.stdout
    assert "entries" in result.stdout


def test_an_error_is_three_lines_and_exit_status_2(run: Run, site: Site) -> None:
    site.backend("acme")
    result = run("-m", "fairlead", "doctor", "acne")
    assert (result.returncode, result.stdout) == (2, "")
    what, where, advice = result.stderr.splitlines()
    assert what == "FL101: no backend is called 'acne'"
    assert where.startswith("  from: installed backends: acme, ")
    assert ", eager, " in where
    assert advice == "  next: did you mean 'acme'?"


def test_the_traceback_is_there_for_those_who_ask(run: Run) -> None:
    result = run("-m", "fairlead", "--traceback", "doctor", "zzz")
    assert result.returncode == 1
    assert result.stderr.startswith("Traceback")
    assert "FL101" in result.stderr
