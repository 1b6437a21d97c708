"""What is in a pack, and what of the samples is not in it, as a page."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.generate._freeze import Frozen
from fairlead.ir import opset
from fairlead_conformance._pack import Manifest

__all__ = ["summary", "tiers"]


def summary(manifest: Manifest, path: Path, parts: Mapping[str, Frozen], lost: Mapping[str, str]) -> str:
    """The page ``docs/results/pack.md``."""
    return "\n".join(_lines(manifest, path, parts, lost)) + "\n"


def _lines(manifest: Manifest, path: Path, parts: Mapping[str, Frozen], lost: Mapping[str, str]) -> Iterator[str]:
    entries = [entry for part in parts.values() for entry, _ in part.cases]
    yield f"# Case pack {manifest.version}"
    yield ""
    yield f"Made by `make pack` with torch {manifest.producer['torch']} from {len(parts)} entries of PyTorch's samples."
    yield f"{path.stat().st_size / 1e6:.1f} MB, SHA-256 of its content `{manifest.sha256}`."
    yield ""
    levels = sorted({level for counts in manifest.counts.values() for level in counts})
    yield from _table(
        ["family", *levels, "cases"],
        [
            [family, *(str(counts.get(level, 0)) for level in levels), str(sum(counts.values()))]
            for family, counts in manifest.counts.items()
        ],
    )
    by_dtype = collections.Counter((entry.family, entry.dtype) for entry in entries)
    yield from _table(["family", "dtype", "samples"], [[*key, str(n)] for key, n in sorted(by_dtype.items())])
    variants = collections.Counter(name for entry in entries for name, _ in entry.variants)
    yield from _table(["variant", "cases"], [[name, str(n)] for name, n in sorted(variants.items())])
    yield from tiers({op for entry in entries for op in entry.ops})
    yield "## Samples that are no cases"
    yield ""
    reasons: collections.Counter[str] = collections.Counter()
    for part in parts.values():
        reasons.update(part.dropped)
    reasons.update(lost.values())
    yield from _table(["why", "samples"], [[_cell(why), str(n)] for why, n in reasons.most_common()])
    none = sorted({*lost, *(name for name, part in parts.items() if not part.cases)})
    yield f"Without any case: {', '.join(f'`{name}`' for name in none)}."


def tiers(used: set[str]) -> Iterator[str]:
    """The lines of the table that says of each tier of the opset how many of its ops are among those in cases."""
    rows = []
    for tier in opset.TIERS:
        own = {spec.id for spec in opset.specs().values() if spec.tier == tier}
        rows.append([tier, str(len(own & used)), str(len(own))])
    yield from _table(["tier", "ops in cases", "ops"], rows)


def _table(heads: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
