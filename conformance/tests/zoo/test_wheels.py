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

LOADABLE = """
import json, warnings
warnings.simplefilter("ignore")
from fairlead_conformance import Level, Subject, execute, manifest
results = [execute(case, Subject("acme")) for case in manifest(Level.L0)]
print(json.dumps([[r.id, r.status, r.check, r.detail] for r in results]))
"""


def judged(folder: Path, module: str, declared: str) -> list[list[str]]:
    """What becomes of the cases of L0, in a process that finds the wheel: ids, statuses, checks, details."""
    package, info = folder / "fairlead_acme", folder / "fairlead_acme-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text(module)
    (package / "capabilities.toml").write_text(declared)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fairlead-acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlead.backends]\nacme = fairlead_acme:backend\n")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    run = [sys.executable, "-c", LOADABLE]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_an_honest_wheel_is_loadable(tmp_path: Path) -> None:
    found = judged(tmp_path, HONEST, DECLARED)
    assert len(found) >= 10
    assert [item for item in found if not item[1].startswith("PASS")] == []


@pytest.mark.parametrize("check", FAULTS)
def test_what_one_check_is_for_no_other_finds(check: str, tmp_path: Path) -> None:
    found = judged(tmp_path, *FAULTS[check])
    assert {item[2] for item in found if item[1].startswith("FAIL")} == {check}
    assert not [item for item in found if item[1] == "HARNESS_ERROR"]
