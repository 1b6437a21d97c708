"""A sample of what ``benchmarks/opset_coverage.py`` measures in full: every node is an op of the table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

COVERAGE = Path(__file__).parents[2] / "benchmarks/opset_coverage.py"

ENTRIES = ["addmv", "max.reduction_no_dim", "nn.functional.embedding_bag", "randint_like", "special.zeta", "view_copy"]


def test_entries_of_opinfo_are_covered_where_they_can_be_captured() -> None:
    command = [sys.executable, str(COVERAGE), "--json", "--what", "opinfo", "--samples", "2", *ENTRIES, "nonzero"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    whole = found["coverage"][-1]
    counts = whole["entries"], whole["covered"], whole["captured"]
    assert counts == (len(ENTRIES) + 1, len(ENTRIES) + 1, len(ENTRIES))
    assert list(found["missing"].values()) == [["nonzero (forward)"]]
    assert found["custom"] == {}
