"""The cases are listed without what runs them."""

from __future__ import annotations

import subprocess
import sys

from fairlead_conformance import Level, manifest
from fairlead_conformance._families import FAMILIES, family
from fairlead_conformance._families._listed import FILE, written

COLLECT = """
import sys
from fairlead_conformance._cli import main
sys.argv = ["fairlead-conformance", "run", "eager", "--level", "L4", "--collect"]
try:
    main()
finally:
    print({"torch", "numpy"} & set(sys.modules), file=sys.stderr)
"""


def test_the_list_of_cases_is_what_the_families_have() -> None:
    cases = [case for name in FAMILIES for case in family(name).cases()]
    assert FILE.read_bytes() == written(cases), "run `make api` if this is meant"
    assert list(manifest(Level.L4)) == cases
    assert len({case.id for case in cases}) == len(cases)


def test_listing_cases_loads_no_torch() -> None:
    listed = subprocess.run([sys.executable, "-c", COLLECT], capture_output=True, text=True, check=True)
    assert listed.stderr.strip() == "set()"
    assert listed.stdout.split() == [case.id for case in manifest(Level.L4)]
