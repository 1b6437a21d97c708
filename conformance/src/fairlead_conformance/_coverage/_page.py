"""The page: for each backend what it takes of each tier, and below that each op with its dtypes and reasons."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from markupsafe import Markup

from fairlead.ir import opset
from fairlead_conformance._coverage._gather import Coverage, Outcome
from fairlead_conformance._report._html import render
from fairlead_conformance._report._summary import DTYPES

__all__ = ["to_html"]

WORDS = {
    Outcome.native: "run as it is",
    Outcome.decomposed: "taken apart, and run",
    Outcome.declined: "declined",
    Outcome.drawn: "drawn by torch",
}
_COLOURS = {Outcome.native: "native", Outcome.decomposed: "extern", Outcome.declined: "declined", Outcome.drawn: "lost"}


def to_html(found: Sequence[Coverage], about: str) -> str:
    """One page that needs no other file. ``about`` says what was asked, of which versions."""
    own = {name: resources.files(__package__).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")}
    seen = {op for coverage in found for op in coverage.ops}
    tiers = {name: [spec.id for spec in opset.specs().values() if spec.tier == name] for name in opset.tiers()}
    custom = sorted(seen - {op for ops in tiers.values() for op in ops})
    used = {dtype for coverage in found for cells in coverage.ops.values() for dtype in cells}
    return render(
        "_coverage/page.html.jinja",
        own_style=Markup(own["page.css"]),
        script=Markup(own["page.js"]),
        about=about,
        found=found,
        tiers={**tiers, "custom": custom},
        sampled=[name for name in (*tiers, "custom") if any(name in coverage.tiers for coverage in found)],
        dtypes=[dtype for dtype in DTYPES if dtype in used],
        outcomes=list(Outcome),
        outcome_words=WORDS,
        colours=_COLOURS,
    )
