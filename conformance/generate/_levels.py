"""Which frozen cases are core inference: ops that nearly every model is made of, mainly in float32."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import msgspec

from fairlead.ir import opset
from fairlead_conformance import Level
from fairlead_conformance._pack import Content, Entry

__all__ = ["levelled"]

CORE = {"f32": 2, "bf16": 1, "i64": 1, "bool": 1}
"""How many samples of an entry are core in each dtype."""

CORE_VARIANTS = frozenset({"transposed", "nan"})

MANDATORY = frozenset({"add", "mul", "nn.functional.relu", "tanh", "mm", "nn.functional.linear"})
"""What a backend has to run in float32 to claim anything."""

CHEAP = 0.03


def levelled(cases: Sequence[tuple[Entry, Content]]) -> list[tuple[Entry, Content]]:
    """The cases, the core of them at `Level.L1`."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    found = []
    for entry, content in cases:
        key = entry.subject, entry.dtype
        if entry.family == "ops" and _is_core(entry) and counts[key] < CORE.get(entry.dtype, 0):
            counts[key] += 1
            variants = tuple((n, Level.L1 if n in CORE_VARIANTS else level) for n, level in entry.variants)
            mandatory = entry.subject in MANDATORY and entry.dtypes == ("f32",)
            entry = msgspec.structs.replace(entry, level=Level.L1, mandatory=mandatory, variants=variants)
        found.append((entry, content))
    return found


def _is_core(entry: Entry) -> bool:
    specs = [opset.spec(op) for op in entry.ops]
    return entry.cost <= CHEAP and all(spec is not None and spec.tier in ("base", "nn") for spec in specs)
