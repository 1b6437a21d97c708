"""All faulty backends, kind by kind."""

from __future__ import annotations

from conformance.tests.zoo import cheats, gradients, ops_arithmetic, ops_reductions, ops_structured, protocol, semantics
from conformance.tests.zoo._fault import Fault

_KINDS = (ops_arithmetic.KIND, ops_reductions.KIND, ops_structured.KIND, semantics.KIND, gradients.KIND, protocol.KIND, cheats.KIND)

ZOO: tuple[Fault, ...] = tuple(fault for kind in _KINDS for fault in kind.faults)
