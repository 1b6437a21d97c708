"""The plots of the HTML report, as SVG text that takes its colours from the page.

Everything is drawn in placeholder colours which become CSS: ``currentColor`` for text and lines, variables for bars.
One file is then legible on a light page, on a dark one and on paper.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from fairlead._compare._data import Accuracy, Comparison, Kind, Report, Row, Times

__all__ = ["plots", "speedup_plot"]

Draw: TypeAlias = Callable[[Axes, Sequence[Row]], None]

INK, FAINT, MAIN, SECOND, THIRD = "#010101", "#020202", "#030303", "#040404", "#050505"

CSS = {INK: "currentColor", FAINT: "var(--faint)", MAIN: "var(--main)", SECOND: "var(--second)", THIRD: "var(--third)"}

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fairlead",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "ytick.left": False,
    "xaxis.labellocation": "right",  # a long label has the room below the names of rows
    "legend.frameon": False,
    "legend.labelcolor": INK,
}

WIDTH, ROW, MARGIN = 4.4, 0.29, 0.9
"""Inches. About the width of a phone, so that the text keeps its size there."""


def plots(comparison: Comparison) -> dict[str, str]:
    """By title, every plot that this comparison has numbers for."""
    drawn = {
        "Steady-state time a call": (_calls, [row for row in comparison.rows if row.times]),
        "First call, caches empty": (_first_calls, [row for row in comparison.rows if row.first]),
        "Worst error, beside eager's own": (_errors, [row for row in comparison.rows if row.accuracy]),
        "Nodes that run natively": (_nodes, [row for row in comparison.rows if row.placement and row.placement.total]),
        "Memory beyond the loaded model": (_memories, [row for row in comparison.rows if row.memory]),
    }
    return {title: _svg(draw, rows) for title, (draw, rows) in drawn.items() if rows}


def speedup_plot(report: Report) -> str:
    """Each row's speed-ups over eager, a dot for each model and a bar for the geometric mean."""
    rows = [(key, [value for value in values if value], mean) for key, values, mean in report.speedups()]

    def draw(axes: Axes, _: Sequence[Row]) -> None:
        for place, (_key, values, mean) in enumerate(rows):
            axes.barh(place, mean or 0.0, color=MAIN, height=0.6)
            axes.plot(values, [place] * len(values), "o", color=INK, markersize=3, alpha=0.7)
        axes.axvline(1.0, color=FAINT, linewidth=1)
        axes.set_xlabel("times eager; bar: geometric mean, dot: a model")
        _name_rows(axes, [key for key, _, _ in rows])

    return _figure(draw, [], len(rows))


def _svg(draw: Draw, rows: Sequence[Row]) -> str:
    return _figure(draw, rows, len(rows))


def _figure(draw: Draw, rows: Sequence[Row], count: int) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, count * ROW + MARGIN), layout="constrained")
        axes = figure.add_subplot()
        draw(axes, rows)
        buffer = io.StringIO()
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return _embedded(buffer.getvalue())


def _embedded(svg: str) -> str:
    """The element alone, without the declarations of a file: inside HTML they are noise, and they name other hosts."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:xmlns(?::\w+)?|width|height)="[^"]*"', "", svg, count=4)
    for placeholder, color in CSS.items():
        svg = svg.replace(placeholder, color)
    return svg


def _calls(axes: Axes, rows: Sequence[Row]) -> None:
    times = [row.times for row in rows if row.times]
    factor, unit = (1e3, "ms") if max(t.median for t in times) >= 1e-3 else (1e6, "µs")
    medians = [t.median * factor for t in times]
    colors = [MAIN if row.kind is Kind.backend else SECOND for row in rows]
    axes.barh(
        range(len(times)), medians, color=colors, height=0.6, xerr=_whiskers(times, factor), ecolor=INK, capsize=2
    )
    axes.set_xlabel(f"{unit}, median with quartiles")
    _name_rows(axes, [row.key for row in rows])


def _whiskers(times: Sequence[Times], factor: float) -> list[list[float]]:
    return [[(t.median - t.lower) * factor for t in times], [(t.upper - t.median) * factor for t in times]]


def _first_calls(axes: Axes, rows: Sequence[Row]) -> None:
    firsts = [row.first for row in rows if row.first]
    _pairs(axes, [f.wall for f in firsts], [f.cpu for f in firsts], ("on the clock", "of processors"))
    axes.set_xlabel("seconds")
    _name_rows(axes, [row.key for row in rows])


def _errors(axes: Axes, rows: Sequence[Row]) -> None:
    found = [row.accuracy for row in rows if row.accuracy]
    places = range(len(found))
    present = [value for a in found for value in (a.error, a.eager) if 0 < value < math.inf] or [1e-7]
    # No error at all is drawn at the left edge, a logarithmic axis having no place for it.
    low, high = (10.0 ** round(edge) for edge in (math.log10(min(present)) - 1, math.log10(max(present)) + 1))
    ours, eagers = ([min(max(value, low), high) for value in values] for values in _errors_of(found))
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.hlines(places, eagers, ours, color=FAINT)
    axes.plot(eagers, places, "|", color=INK, markersize=9, label="eager's own")
    axes.plot(ours, places, "o", color=MAIN, markersize=5, label="this row", clip_on=False)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("difference from float64 / largest value")
    _legend(axes)
    _name_rows(axes, [row.key for row in rows])


def _errors_of(found: Sequence[Accuracy]) -> tuple[list[float], list[float]]:
    return [a.error for a in found], [a.eager for a in found]


def _nodes(axes: Axes, rows: Sequence[Row]) -> None:
    placed = [row.placement for row in rows if row.placement]
    native = [p.native or 0 for p in placed]
    elsewhere = [(p.total or 0) - (p.native or 0) for p in placed]
    axes.barh(range(len(placed)), native, color=MAIN, height=0.6, label="native")
    axes.barh(range(len(placed)), elsewhere, left=native, color=THIRD, height=0.6, label="ran elsewhere")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("nodes")
    _legend(axes)
    _name_rows(axes, [row.key for row in rows])


def _memories(axes: Axes, rows: Sequence[Row]) -> None:
    memories = [row.memory for row in rows if row.memory]
    _pairs(axes, [m.peak for m in memories], [m.held for m in memories], ("peak", "held after it"))
    axes.set_xlabel("MiB")
    _name_rows(axes, [row.key for row in rows])


def _pairs(axes: Axes, first: Sequence[float], second: Sequence[float], labels: tuple[str, str]) -> None:
    places = range(len(first))
    axes.barh([place - 0.17 for place in places], first, color=MAIN, height=0.33, label=labels[0])
    axes.barh([place + 0.17 for place in places], second, color=SECOND, height=0.33, label=labels[1])
    _legend(axes)


def _legend(axes: Axes) -> None:
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
