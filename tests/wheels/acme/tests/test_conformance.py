"""Fairlead's conformance suite as a test of this wheel; the workflow runs the same and keeps the report."""

import subprocess
import sys

SUITE = ["--pyargs", "fairlead_conformance", "--backend=acme", "--level=L1"]


def test_the_backend_conforms() -> None:
    assert subprocess.call([sys.executable, "-m", "pytest", *SUITE]) == 0
