"""A report as a badge: level, correct and coverage, and the looser numbers that the backend declares."""

from __future__ import annotations

from markupsafe import escape

from fairlead.errors import ArgumentError
from fairlead_conformance._report._data import Report
from fairlead_conformance._report._summary import level_name

__all__ = ["to_badge"]

_NARROW, _WIDE = "fijlrt.,:;|!'()[]· ", "mwMW%@"
_COLOURS = ("#8a5a00", "#5d6670", "#1d6fb4", "#17639f", "#0f4f83", "#0b3d66")
"""By the level that is reached, none first."""


def to_badge(report: Report) -> str:
    """The badge as SVG, 20 pixels high. Raises `fairlead.errors.ArgumentError` for a run that is not complete."""
    if not report.complete:
        raise ArgumentError(
            "a run that is not complete has no badge",
            where="; ".join(report.reasons),
            next="run every case of the level, or merge all shards",
        )
    parts = [level_name(report), f"{report.correct:.1%} correct", f"{report.coverage:.1%} coverage"]
    value = " · ".join([*parts, *report.backend.numerics])
    return _svg("fairlead conformance", value, _COLOURS[0 if report.claim is None else report.claim + 1])


def _svg(label: str, value: str, colour: str) -> str:
    left, right = _width(label) + 12, _width(value) + 12
    text = f"{label}: {value}"
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{escape(text)}">
<title>{escape(text)}</title>
<clipPath id="r"><rect width="{left + right}" height="20" rx="4"/></clipPath>
<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#2c3137"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="{left - 12}">{escape(label)}</text>
<text x="{left + 6}" y="14" textLength="{right - 12}">{escape(value)}</text>
</g>
</svg>
"""


def _width(text: str) -> int:
    """About the pixels of a text in Verdana of 11; ``textLength`` fits what is drawn to it."""
    return round(sum(4.1 if c in _NARROW else 10.0 if c in _WIDE else 6.6 for c in text))
