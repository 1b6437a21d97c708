"""All faulty backends, kind by kind."""

from __future__ import annotations

from conformance.tests.zoo import (
    cheats,
    gradients,
    load,
    ops_arithmetic,
    ops_reductions,
    ops_structured,
    protocol,
    random_numbers,
    resources,
    semantics,
)
from conformance.tests.zoo._fault import Fault

_FILES = (
    ops_arithmetic,
    ops_reductions,
    ops_structured,
    semantics,
    gradients,
    protocol,
    cheats,
    random_numbers,
    resources,
    load,
)

ZOO: tuple[Fault, ...] = tuple(fault for file in _FILES for fault in file.KIND.faults)
