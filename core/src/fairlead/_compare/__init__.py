"""``fairlead compare``: a model through every backend, verified against eager and measured.

`compare` gives a `Report`, which is data; `tables`, `to_json` and `to_html` show it. Nothing here imports torch: that
happens in worker processes, one for each row.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from fairlead._compare import _machine
from fairlead._compare._data import Comparison, Kind, Report, Row, Settings, Status
from fairlead._compare._html import require_report, to_html
from fairlead._compare._messages import Subject
from fairlead._compare._session import Entry, Note, compare_model, entries, steps
from fairlead._compare._table import tables
from fairlead._models import check_spec

__all__ = [
    "Comparison",
    "Entry",
    "Kind",
    "Note",
    "Report",
    "Row",
    "Settings",
    "Status",
    "Subject",
    "compare",
    "entries",
    "require_report",
    "steps",
    "tables",
    "to_html",
    "to_json",
]


def compare(specs: Sequence[str], rows: Sequence[Entry], settings: Settings, note: Note) -> Report:
    """Measure and verify each MODEL with each row, as `entries` makes them.

    ``note`` is called before each step. Raises `ModelNotFoundError` or `ArgumentError` where a MODEL does not lead to
    a module that runs in eager; what happens to any other row is in the report.
    """
    for spec in specs:
        check_spec(spec)
    return Report(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=_machine.describe(),
        settings=settings,
        comparisons=tuple(compare_model(spec, rows, settings, note) for spec in specs),
    )


def to_json(report: Report) -> bytes:
    """The whole report; ``msgspec.json.decode(..., type=Report)`` reads it back."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
