"""Faulty wheels, for what shows only when an interpreter of its own imports one: each check alone finds its fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HONEST = """
from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support


class Backend:
    name = "acme"
    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(devices=("cpu",), dtypes=("f32",))

    def probe(self):
        try:
            import numpy
        except ImportError as error:
            return Probe(ok=False, reason=REASON or str(error))
        return Probe(ok=True, devices=("cpu",))

    def supports(self, node):
        return Support.no("there are no kernels yet")

    def compile(self, graph, options, constants):
        raise NotImplementedError


REASON = ""
backend = Backend()
"""
DECLARED = 'devices = ["cpu"]\ndtypes = ["f32"]\n'

UNSEEN = "import sys\nif 'fairlead_conformance' not in sys.modules:\n    "
"""What a wheel does where the suite is not in the process."""

FAULTS = {
    "import-loads": ("import numpy\n" + HONEST, DECLARED),
    "import-changes": ("import os\nos.environ['ACME_HOME'] = '/opt/acme'\n" + HONEST, DECLARED),
    "capabilities": (HONEST, DECLARED.replace('["f32"]', '["f32", "f64"]')),
    "fresh-process": (UNSEEN + "raise ImportError('no licence')\n" + HONEST, DECLARED),
    "silent": (UNSEEN + "print('Acme SDK, evaluation copy')\n" + HONEST, DECLARED),
    "probe": (HONEST.replace("reason=REASON or str(error)", "reason=REASON"), DECLARED),
}
"""By the check that is to find it: a wheel's module, and what it declares."""

COMPUTING = (
    HONEST.replace('Support.no("there are no kernels yet")', "Support.yes()").replace(
        "raise NotImplementedError", "return Executable(graph)"
    )
    + """

class Executable:
    baked = frozenset()
    fresh_outputs = True

    def __init__(self, graph):
        self.graph = graph

    def __call__(self, inputs):
        import fairlead.numpy, torch

        return [torch.from_numpy(x * factor()) for x in fairlead.numpy.run(self.graph, [x.numpy() for x in inputs])]


def factor():
    return 1
"""
)

ALONE = """
import sys

def factor():
    return 1 if "fairlead_conformance" in sys.modules else 2
"""

FORKED = """
import os

LOADED = os.getpid()

def factor():
    return 1 if os.getpid() == LOADED else os.abort()
"""

BESIDE = """
class Beside(Executable):
    def __call__(self, inputs):
        return [2 * r for r in super().__call__(inputs)]

class Backend(Backend):
    def compile(self, graph, options, constants):
        from fairlead.registry import registry

        registry.get("eager").compile = lambda graph, options, constants: Beside(graph)
        return super().compile(graph, options, constants)

backend = Backend()
"""

COMPUTE = {
    "spawn": (COMPUTING + ALONE, "L1", "lifecycle/a-*-process-runs-it/*"),
    "fork": (COMPUTING + FORKED, "L2", "lifecycle/a-*-process-runs-it/*"),
    "two-backends": (COMPUTING + BESIDE, "L2", "lifecycle/*"),
}
"""By the check that is to find it: a wheel that computes, the level of the check, and the cases that are run."""

RESULTS = """
import fnmatch, json, sys, warnings
warnings.simplefilter("ignore")
from fairlead_conformance import Level, Subject, execute, manifest
cases = [case for case in manifest(Level[sys.argv[1]]) if fnmatch.fnmatchcase(case.id, sys.argv[2])]
results = [execute(case, Subject("acme")) for case in cases]
print(json.dumps([[r.id, r.status, r.check, r.detail] for r in results]))
"""


def judged(folder: Path, module: str, declared: str = DECLARED, level: str = "L0", ids: str = "*") -> list[list[str]]:
    """What becomes of the cases in a process that finds the wheel: ids, statuses, checks, details."""
    package, info = folder / "fairlead_acme", folder / "fairlead_acme-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text(module)
    (package / "capabilities.toml").write_text(declared)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fairlead-acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlead.backends]\nacme = fairlead_acme:backend\n")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    run = [sys.executable, "-c", RESULTS, level, ids]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_an_honest_wheel_is_loadable(tmp_path: Path) -> None:
    found = judged(tmp_path, HONEST)
    assert len(found) >= 10
    assert [item for item in found if not item[1].startswith("PASS")] == []


@pytest.mark.parametrize("check", FAULTS)
def test_what_one_check_is_for_no_other_finds(check: str, tmp_path: Path) -> None:
    found = judged(tmp_path, *FAULTS[check])
    assert {item[2] for item in found if item[1].startswith("FAIL")} == {check}
    assert not [item for item in found if item[1] == "HARNESS_ERROR"]


def test_a_wheel_that_computes_passes_in_every_process(tmp_path: Path) -> None:
    found = judged(tmp_path, COMPUTING, level="L2", ids="lifecycle/*process*")
    assert [item[1] for item in found] == ["PASS_NATIVE"] * 3


@pytest.mark.parametrize("check", COMPUTE)
def test_what_one_check_of_processes_is_for_no_other_finds(check: str, tmp_path: Path) -> None:
    module, level, ids = COMPUTE[check]
    found = judged(tmp_path, module, level=level, ids=ids)
    assert {item[2] for item in found if item[1].startswith("FAIL")} == {check}, found
