"""Which frozen cases are core inference: ops that nearly every model is made of, mainly in float32."""

from __future__ import annotations

import collections
import math
from collections.abc import Collection, Sequence

import msgspec

from fairlead.ir import TensorType, from_bytes, opset
from fairlead_conformance import Level
from fairlead_conformance._pack import Content, Entry

__all__ = ["levelled"]

CORE = {"f32": 2, "bf16": 1, "i64": 1, "bool": 1}
"""How many samples of an entry are core in each dtype: the first, of those that have elements where there are any."""

CORE_VARIANTS = frozenset({"transposed", "nan"})

MANDATORY = frozenset({"add", "mul", "nn.functional.relu", "tanh", "mm", "nn.functional.linear"})
"""What a backend has to run in float32 to claim anything: on elements, as any backend is right about none."""

CHEAP = 0.03


def levelled(cases: Sequence[tuple[Entry, Content]]) -> list[tuple[Entry, Content]]:
    """The cases, the core of them at `Level.L1`."""
    full = {entry.id for entry, content in cases if _has_elements(content)}
    core = _core([entry for entry, _ in cases], full)
    found = []
    for entry, content in cases:
        if entry.id in core:
            variants = tuple((n, Level.L1 if n in CORE_VARIANTS else level) for n, level in entry.variants)
            mandatory = entry.subject in MANDATORY and entry.dtypes == ("f32",) and entry.id in full
            entry = msgspec.structs.replace(entry, level=Level.L1, mandatory=mandatory, variants=variants)
        found.append((entry, content))
    return found


def _core(entries: Sequence[Entry], full: Collection[str]) -> set[str]:
    """The ids of the core samples; ``full``: of those that have elements."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    found: set[str] = set()
    for entry in sorted(entries, key=lambda entry: entry.id not in full):
        key = entry.subject, entry.dtype
        if entry.family == "ops" and _is_core(entry) and counts[key] < CORE.get(entry.dtype, 0):
            counts[key] += 1
            found.add(entry.id)
    return found


def _has_elements(content: Content) -> bool:
    """Whether each tensor that goes in has several."""
    types = [i.value.type for i in from_bytes(content.module).graphs[0].inputs]
    shapes = [t.shape for t in types if isinstance(t, TensorType)]
    return all(math.prod(d if isinstance(d, int) else 0 for d in shape) > 1 for shape in shapes)


def _is_core(entry: Entry) -> bool:
    specs = [opset.spec(op) for op in entry.ops]
    return entry.cost <= CHEAP and all(spec is not None and spec.tier in ("base", "nn") for spec in specs)
