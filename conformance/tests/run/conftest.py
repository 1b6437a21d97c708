"""A run of the command in a process of its own, against a backend and cases that are made up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from fairlead_conformance import Result
from fairlead_conformance._families import OTHER_FAMILIES

from .wheels import BACKEND, install

Conform = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def conform(tmp_path: Path) -> Conform:
    """Run ``fairlead-conformance run hostile`` over the cases of these names; the report is in ``tmp_path/out``."""

    def conform(
        names: tuple[str, ...], *arguments: str, source: str = BACKEND, wait: str = "0"
    ) -> subprocess.CompletedProcess[str]:
        site = tmp_path / "site"
        if not site.exists():
            install(site, names, source)
        return subprocess.run(
            [sys.executable, "-m", "fairlead_conformance", "run", "hostile", "--report", "out", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env=environment(tmp_path) | {"WAIT": wait},
        )

    return conform


def environment(tmp_path: Path) -> dict[str, str]:
    """With the wheel and the family in reach, and every temporary file below ``tmp_path``."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]),
        OTHER_FAMILIES: "acts,fuzz",
        "LEFT_BEHIND": left_behind(tmp_path),
        "TMPDIR": str(tmp_path),
        "COLUMNS": "200",
    }


def left_behind(tmp_path: Path) -> str:
    """Seconds for which children sleep: a number by which those of this test are known."""
    return str(100_000 + abs(hash(tmp_path)) % 100_000)


@pytest.fixture
def logged(tmp_path: Path) -> Callable[[], dict[str, Result]]:
    """The log of the run, by the names of the cases."""

    def logged() -> dict[str, Result]:
        lines = (tmp_path / "out/results.jsonl").read_bytes().splitlines()
        results = [msgspec.json.decode(line, type=Result) for line in lines]
        assert len({result.id for result in results}) == len(results)
        return {result.id.split("/")[1]: result for result in results}

    return logged
