"""An explanation as one HTML page that needs no other file."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

from fairlead.errors import ExtraMissingError
from fairlead.explanation import Explanation, Stage
from fairlead.explanation._text import headline

__all__ = ["Bar", "bars", "to_html"]

LANES = {Stage.dynamo: 0, Stage.autograd: 1, Stage.constants: 1, Stage.backend: 1}
"""The row of the timeline that a stage is drawn in; what is within these is a row below."""


class Bar(NamedTuple):
    """A stage on the timeline: its row, and where it begins and how long it is in percent of the whole."""

    lane: int
    stage: str
    left: float
    width: float
    title: str


def to_html(explanation: Explanation) -> str:
    """The whole page. It refers to nothing outside of itself.

    Raises `ExtraMissingError` where jinja2 is not installed.
    """
    if importlib.util.find_spec("jinja2") is None:
        raise ExtraMissingError(
            "the page needs jinja2: not installed",
            where="fairlead's extra 'report'",
            next="pip install 'fairlead[report]'",
        )
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(
        resources.files(__package__).joinpath("explanation.html.jinja").read_text("utf-8")
    )
    return template.render(found=explanation, headline=headline(explanation), bars=tuple(bars(explanation)))


def bars(explanation: Explanation) -> Iterator[Bar]:
    """The timeline: frames above, what Fairlead and the backend did in them below."""
    rows = [(f.start, f.seconds, Stage.dynamo, f"frame {f.id}: {f.line}") for f in explanation.frames]
    rows += [(s.start, s.seconds, s.stage, f"{s.stage} {s.detail}".rstrip()) for s in explanation.spans]
    if not rows:
        return
    begin = min(start for start, *_ in rows)
    whole = max(max(start + seconds for start, seconds, *_ in rows) - begin, explanation.seconds, 1e-9)
    for start, seconds, stage, title in sorted(rows):
        left, width = 100 * (start - begin) / whole, 100 * seconds / whole
        yield Bar(LANES.get(stage, 2), stage, left, width, f"{title}, {1e3 * seconds:,.1f} ms")
