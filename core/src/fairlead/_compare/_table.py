"""A report as text: a table for each model, why rows failed and nodes were declined, and the means over models."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairlead._compare._data import Comparison, Report, Settings, Status
from fairlead._compare._format import CELLS, busy, cells, declines, problem, speedup, subtitle

__all__ = ["tables"]

EXPENDABLE = ("breaks", "graphs", "held, MiB", "peak, MiB", "CPU, s", "eager's", "native")
"""The columns that a narrow terminal does without, in this order; the JSON and the HTML have them all."""

STYLES = {Status.ok: "green", Status.not_ready: "yellow"}


def tables(report: Report, width: int) -> Iterator[RenderableType]:
    """What ``fairlead compare`` prints, for a terminal of ``width`` columns."""
    for comparison in report.comparisons:
        yield Text.assemble("\n", (comparison.model, "bold"), "  ", (subtitle(comparison, report.settings), "dim"))
        yield _rows(comparison, width)
        yield from _remarks(comparison)
    if len(report.comparisons) > 1:
        yield _means(report)
    if warning := busy(report.machine):
        yield Text(warning, "yellow")
    yield Text(_legend(report.settings), "dim")


def _rows(comparison: Comparison, width: int) -> Table:
    rows = [dict(zip(CELLS, cells(row), strict=True)) for row in comparison.rows]
    widths = {heading: max(map(len, (heading, *(row[heading] for row in rows)))) + 2 for heading in CELLS}
    for heading in EXPENDABLE:
        if sum(widths.values()) + 1 <= width:
            break
        del widths[heading]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in widths:
        table.add_column(heading, justify="left" if heading in CELLS[:2] else "right", no_wrap=True)
    for row, texts in zip(comparison.rows, rows, strict=True):
        styles = {"": "bold", "status": STYLES.get(row.status, "red")}
        table.add_row(*(Text(texts[heading], styles.get(heading, "")) for heading in widths))
    return table


def _remarks(comparison: Comparison) -> Iterator[Text]:
    for row in comparison.rows:
        if text := problem(row):
            yield Text(text, "yellow" if row.status is Status.not_ready else "red")
        yield from (Text(line, "dim") for line in declines(row))


def _means(report: Report) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("speed-up", no_wrap=True)
    for comparison in report.comparisons:
        table.add_column(comparison.model, justify="right", no_wrap=True)
    table.add_column("geomean", justify="right", no_wrap=True, style="bold")
    for key, speedups, mean in report.speedups():
        table.add_row(Text(key, "bold"), *map(speedup, speedups), speedup(mean))
    return table


def _legend(settings: Settings) -> str:
    return (
        f"Speed-up: over PyTorch eager, the median of the ratios of {settings.turns} turns taken round and round. "
        "Call: median, and half the interquartile range.\n"
        "First: the first call, caches empty, imports included; CPU: processor seconds of it, with child processes. "
        "Peak: memory of the row's own\n"
        "process beyond the loaded model, until the first result; held: after it, with a copy of the weights where "
        "the backend packs them.\n"
        "Error: largest difference from float64 over the tensor's largest value, worst tensor; beside it eager's own. "
        "Graphs: of the first call, + those compiled later.\n"
        "torch ...: a backend of torch.compile itself; rows without a prefix are Fairlead's."
    )
