"""A vendor's first half hour: a wheel written by command, built, installed, and held to the suite by its workflow."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import yaml

from .environments import add, environment, required

BORROWED = {"fairlead", "fairlead-conformance", "torch", "numpy", "ml_dtypes", "pytest"}


@pytest.fixture
def python(wheels: dict[str, Path], tmp_path: Path) -> str:
    """A Python with core, the suite and what they need, as after ``pip install fairlead-conformance``."""
    ours = [wheels[name] for name in ("fairlead", "fairlead-conformance")]
    packages = required(*BORROWED) | BORROWED - {"fairlead", "fairlead-conformance"}
    return environment(tmp_path / "environment", {name for name in packages if not name.startswith("fairlead")}, ours)


def shell(python: str, folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A command of the environment; scripts of borrowed packages are modules there."""
    first, *rest = shlex.split(line)
    script = Path(python).with_name(first)
    command = [str(script)] if script.exists() else [python, "-m", first]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*command, *rest],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
        env={**variables, "OMP_NUM_THREADS": "1"},
    )


def test_a_new_backend_passes_its_own_workflow(python: str, tmp_path: Path) -> None:
    result = shell(python, tmp_path, "fairlead new-backend zenith")
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "fairlead-zenith"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    add(python, folder.glob("dist/*.whl"))

    workflow = yaml.safe_load((folder / ".github/workflows/conformance.yml").read_text("utf-8"))
    lines = {step["name"]: step["run"] for step in workflow["jobs"]["conformance"]["steps"] if "run" in step}
    for step in ("Run", "Verify"):
        result = shell(python, folder, lines[step])
        assert result.returncode == 0, f"{result.stdout[-3000:]}\n{result.stderr[-3000:]}"

    report = msgspec.json.decode((folder / "report/report.json").read_bytes())
    counts = Counter({status: count for status, count in report["counts"].items() if count})
    assert (report["complete"], report["claim"]) == (True, 1), report["reasons"]
    assert set(counts) <= {"PASS_NATIVE", "DECLINED"}, counts
    assert counts["PASS_NATIVE"] > 0
    native = {op for result in report["results"] for op in result.get("native", ())}
    assert {"aten.add.Tensor", "aten.linear.default", "aten.mm.default", "aten.sum.dim_IntList"} <= native
    assert result.stdout.startswith("valid: ")
