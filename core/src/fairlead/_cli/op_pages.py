"""What the opset says of an op, as a page of Markdown, and the pages of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairlead.ir import opset
from fairlead.ir.infer import RULES
from fairlead.ir.opset import OpSpec, Parameter, Signature

COMPARISONS = {
    "exact": "equal, bit for bit",
    "ties": "nothing but which of equal elements an index names",
    "accumulation": "rounding that grows with the number of terms",
    "distribution": "numbers of the same distribution; the same numbers only under torch's generator",
}
INTERPRETERS = {"torch": "`fairlead.interpret`", "numpy": "`fairlead.numpy`"}


def page(spec: OpSpec) -> str:
    """The page of one op."""
    signature = opset.signature(spec.signature)
    tier = opset.tiers()[spec.tier]
    facts = {
        "tier": f"{tier.name}: {_lower(tier.meaning)}",
        "version": f"{spec.version}, since opset {spec.since}",
        "correct results differ by": COMPARISONS.get(spec.comparison, f"at most {spec.comparison}"),
        "decomposition": "`fairlead.passes.decompose`, unless a backend keeps it" if spec.decomposition else "none",
        "interpreters": ", ".join(INTERPRETERS[i] for i in spec.interpreters),
        "dtype and shape": _rule(spec.id),
    }
    parts = [
        f"# {spec.id}",
        spec.meaning,
        f"```\n{spec.signature}\n```",
        _rows(("", ""), facts.items()),
        *_parameters(signature),
    ]
    return "\n\n".join(parts) + "\n"


def write_pages(folder: Path) -> int:
    """Write a page for each op into a folder, and one that lists them; how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = opset.specs().values()
    for spec in specs:
        folder.joinpath(f"{spec.id}.md").write_text(page(spec), "utf-8")
    lists = [
        f"## {tier.name}\n\n{tier.meaning}\n\n"
        + _rows(("op", "is"), ((f"[{s.id}]({s.id}.md)", s.meaning) for s in specs if s.tier == tier.name))
        for tier in opset.tiers().values()
    ]
    title = f"# Opset {opset.OPSET_VERSION}\n\n{len(specs)} ops in {len(lists)} tiers."
    folder.joinpath("index.md").write_text("\n\n".join([title, *lists]) + "\n", "utf-8")
    return len(specs)


def _rule(op: str) -> str:
    rule = RULES.get(op)
    if rule is None:
        return "no rule: the graph says them"
    first = (rule.__doc__ or "").strip().partition("\n")[0]
    return f"`fairlead.ir.infer`: {_lower(first)}" if first else "`fairlead.ir.infer` has a rule"


def _parameters(signature: Signature) -> Iterable[str]:
    if signature.parameters:
        yield _rows(("parameter", "type", "default"), (_parameter(p) for p in signature.parameters))


def _parameter(parameter: Parameter) -> tuple[str, str, str]:
    default = "" if parameter.required else f"`{parameter.default!r}`"
    return parameter.name, "a region" if parameter.type.element == "Graph" else f"`{parameter.type}`", default


def _rows(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")
