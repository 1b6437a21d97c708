"""Numbers as people read them, the same in the table and in the HTML report. What was not measured is a dash."""

from __future__ import annotations

import math

from fairlead._compare._data import Comparison, Machine, PlacementSummary, Row, Settings, Times

__all__ = ["CELLS", "busy", "cells", "declines", "problem", "speedup", "subtitle"]

DASH = "-"


def call(times: Times | None) -> str:
    """Milliseconds a call: the median and half the interquartile range.

    >>> call(Times(0.0123, 0.0120, 0.0130, 20, 0.0, ()))
    '12.3 ±0.5'
    """
    return DASH if times is None else f"{_digits(times.median * 1e3)} ±{_digits((times.upper - times.lower) / 2 * 1e3)}"


def _digits(value: float) -> str:
    """Three digits, and no more decimals than that takes."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.3f}".rstrip("0").rstrip(".")


def speedup(value: float | None) -> str:
    """A ratio to eager."""
    return DASH if value is None else f"{value:.2f}x"


def _seconds(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}"


def _error(value: float | None) -> str:
    return DASH if value is None else "0" if value == 0 else f"{value:.0e}"


def _native(where: PlacementSummary | None) -> str:
    return DASH if where is None or where.share is None else f"{math.floor(where.share * 100)}%"


def _graphs(where: PlacementSummary | None) -> str:
    """How many graphs there are; and the breaks, and what was compiled again, where there is some."""
    if where is None or where.graphs == 0:
        return DASH
    return " ".join([f"{where.graphs}", *([f"+{where.recompiled}"] if where.recompiled else [])])


CELLS = (
    "",
    "status",
    "speed-up",
    "call, ms",
    "first, s",
    "CPU, s",
    "error",
    "eager's",
    "native",
    "graphs",
    "breaks",
    "peak, MiB",
    "held, MiB",
)
"""The headings of `cells`."""


def cells(row: Row) -> tuple[str, ...]:
    """One row as text, a cell for each of `CELLS`."""
    found, where = row.accuracy, row.placement
    return (
        row.key,
        row.status.value,
        speedup(row.speedup),
        call(row.times),
        _seconds(row.first.wall if row.first else None),
        _seconds(row.first.cpu if row.first else None),
        _error(found.error if found else None),
        _error(found.eager if found and found.exact else None),
        _native(where),
        _graphs(where),
        str(where.breaks) if where and where.graphs else DASH,
        DASH if row.memory is None else f"{row.memory.peak:.0f}",
        DASH if row.memory is None else f"{row.memory.held:.0f}",
    )


def problem(row: Row) -> str:
    """Why a row is not ``ok``, or nothing."""
    return f"{row.key}: {row.reason}" if row.reason else ""


def declines(row: Row) -> tuple[str, ...]:
    """One line for each reason why nodes of this row ran elsewhere."""
    found = row.placement.declines if row.placement else ()
    return tuple(
        f"{row.key} declined {d.count} x {d.op}: {d.reason} (ran on {d.backend}"
        + (f", {d.location})" if d.location else ")")
        for d in found
    )


def busy(machine: Machine) -> str:
    """A warning where the machine had other work before it was measured on, or nothing."""
    if not machine.busy:
        return ""
    return (
        f"This machine was busy: a load of {machine.load:.1f} on {machine.cores} cores. Ratios suffer less than times; "
        "--threads 1 steadies both."
    )


def subtitle(comparison: Comparison, settings: Settings) -> str:
    """What was run: the mode, the inputs and the weights."""
    mode = "training step" if settings.training else "inference"
    sizes = ", dynamic sizes" if settings.dynamic else ""
    shared = ", shared" if settings.share_weights else ""
    inputs = ", ".join(f"{name} {kind}" for name, kind in comparison.inputs.items())
    return f"{mode}{sizes}; {inputs}; weights {comparison.weights:.0f} MiB{shared}"
