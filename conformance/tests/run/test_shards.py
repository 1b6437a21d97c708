"""Shards that ran one by one, put together, are the run of all cases at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fairlead_conformance._report import read_report

from .conftest import Conform, environment

NAMES = ("behave", "mismatch", "decline", "exit_at_once", "leave_files", "segfault", "behave")


def test_all_shards_together_are_the_whole(conform: Conform, tmp_path: Path) -> None:
    common = ("--seed", "5", "--workers", "1")
    for index in (1, 2, 3):
        ended = conform(NAMES, *common, "--shard", f"{index}/3", "--report", f"shard{index}")
        assert "incomplete: shards missing:" in ended.stdout
    conform(NAMES, *common, "--report", "whole")
    merge = [sys.executable, "-m", "fairlead_conformance", "merge", "shard1", "shard2", "shard3", "-o", "merged"]
    ended = subprocess.run(merge, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    merged, whole = (read_report(tmp_path / name / "report.json") for name in ("merged", "whole"))
    assert (merged.counts, merged.reasons) == (whole.counts, whole.reasons)
    assert [(r.id, r.status, r.check) for r in merged.results] == [(r.id, r.status, r.check) for r in whole.results]
    assert (merged.run.seed, len(merged.run.shards)) == (5, 3)
