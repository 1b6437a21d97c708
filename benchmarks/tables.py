"""The benchmark's result as Markdown: what each target of the project came to, then all numbers."""

from __future__ import annotations

import statistics
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairlead._compare import Comparison, Kind, Report, Row, Status
from fairlead._compare._data import Machine

__all__ = [
    "EAGER",
    "FREEZING",
    "INDUCTOR",
    "keys_of",
    "markdown",
    "speed_over",
    "table",
    "versions_of",
    "write_results",
]

FOLDERS = (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), str(Path(__file__).parents[1]))
"""Where this machine keeps what is measured; a result does not depend on it."""

EAGER, INDUCTOR, FREEZING = "PyTorch eager", "torch inductor", "inductor freezing"

Stages = Mapping[str, Mapping[str, Mapping[str, float]]]


def write_results(out: Path, page: str, data: bytes) -> None:
    """Write the page and its data beside each other, without this machine's folders."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".md", page), (".json", data.decode())):
        for folder in FOLDERS:
            text = text.replace(f"{folder}/", "")
        out.with_suffix(suffix).write_text(text, "utf-8")


def markdown(report: Report, stages: Stages, command: str) -> str:
    """The page."""
    sections = [_head(report, command), *_ratios(report), _calls(report), _processor(report), _first_calls(report)]
    sections += [_memory(report), _errors(report), _placement(report)]
    if stages:
        sections.append(_stages(stages))
    sections.append(_problems(report))
    return "\n\n".join(section for section in sections if section) + "\n"


def versions_of(machine: Machine) -> str:
    """What was measured, by name and version, without the wheels of each backend."""
    return ", ".join(f"{name} {version}" for name, version in machine.versions.items() if "fairlead-" not in name)


def _head(report: Report, command: str) -> str:
    machine = report.machine
    mode = "training step (forward, loss, backward)" if report.settings.training else "inference"
    threads = report.settings.threads or "torch's choice of"
    if report.settings.dtype is not None:
        mode += f", {report.settings.dtype}"
    if report.settings.dynamic:
        mode += ", sizes that vary"
    return (
        f"# Backends on a CPU: {mode}\n\n"
        f"`{command}`, {report.date}. {machine.processor}, {machine.cores} cores, {machine.memory / 1024:.0f} GiB; "
        f"{threads} threads; {versions_of(machine)}.\n\n"
        "Architectures are real, weights random, depth reduced (`fairlead compare --list`). Every row was verified "
        "against float64 first; those that were not right are listed at the end. A ratio is the median of the "
        f"ratios of {report.settings.turns} turns that all rows took round and round; it is to be trusted, "
        "milliseconds on a shared machine less so."
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; all columns but the first are numbers, on the right."""
    lines = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def keys_of(report: Report) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.key for comparison in report.comparisons for row in comparison.rows))


def _row(comparison: Comparison, key: str) -> Row | None:
    return next((row for row in comparison.rows if row.key == key), None)


def _cells(report: Report, key: str, value: Callable[[Row], str]) -> list[str]:
    found = [_row(comparison, key) for comparison in report.comparisons]
    return [value(row) if row else "-" for row in found]


def _grid(title: str, report: Report, value: Callable[[Row], str]) -> str:
    headings = ["", *(comparison.model for comparison in report.comparisons)]
    rows = ([key, *_cells(report, key, value)] for key in keys_of(report))
    return f"## {title}\n\n" + table(headings, rows)


def speed_over(comparison: Comparison, key: str, over: str) -> float | None:
    """How many times as fast as another a row is at a model; None where one of them has no right result."""
    row, other = _row(comparison, key), _row(comparison, over)
    if row is None or other is None or row.times is None or other.times is None:
        return None
    if row.status is not Status.ok and row.kind is not Kind.other:
        return None  # A wrong result is not fast. What others get wrong is listed below their numbers.
    return row.times.speedup_over(other.times)


def _mean(values: Sequence[float | None]) -> str:
    present = [value for value in values if value is not None]
    if not present:
        return "-"
    missing = len(values) - len(present)
    return f"**{statistics.geometric_mean(present):.2f}**" + (f" (of {len(present)})" if missing else "")


def _ratios(report: Report) -> Iterator[str]:
    """A table over each row that others are compared with: Inductor first, where it is one."""
    yield from (_ratios_over(report, key) for key in (INDUCTOR, EAGER, FREEZING) if key in keys_of(report))


def _ratios_over(report: Report, over: str) -> str:
    headings = ["", *(comparison.model for comparison in report.comparisons), "geomean"]

    def rows() -> Iterator[list[str]]:
        for key in keys_of(report):
            values = [speed_over(comparison, key, over) for comparison in report.comparisons]
            yield [key, *("-" if value is None else f"{value:.2f}" for value in values), _mean(values)]

    return f"## Speed-up over {over}\n\n" + table(headings, rows())


def _calls(report: Report) -> str:
    def value(row: Row) -> str:
        return "-" if row.times is None else f"{row.times.median * 1e3:.1f}"

    return _grid("Milliseconds a call, median", report, value)


def _processor(report: Report) -> str:
    """What a busy machine changes less than the milliseconds on the clock."""

    def value(row: Row) -> str:
        return "-" if row.times is None else f"{row.times.cpu * 1e3:.1f}"

    return _grid("Processor milliseconds a call, all threads, mean", report, value)


def _first_calls(report: Report) -> str:
    def value(row: Row) -> str:
        return "-" if row.first is None else f"{row.first.cpu:.1f}"

    text = _grid("Cold first call, processor seconds", report, value)
    shares = [
        f"{key}: {statistics.geometric_mean(found):.2f} of torch inductor's"
        for key in keys_of(report)
        if key not in (INDUCTOR, EAGER) and (found := list(_cold_ratios(report, key)))
    ]
    return text + ("\n\nGeometric means: " + "; ".join(shares) + "." if shares else "")


def _cold_ratios(report: Report, key: str) -> Iterator[float]:
    for comparison in report.comparisons:
        row, inductor = _row(comparison, key), _row(comparison, INDUCTOR)
        if row and row.first and inductor and inductor.first:
            yield row.first.cpu / inductor.first.cpu


def _memory(report: Report) -> str:
    def value(row: Row) -> str:
        return "-" if row.memory is None else f"{row.memory.peak:.0f} / {row.memory.held:.0f}"

    weights = ", ".join(f"{comparison.model} {comparison.weights:.0f}" for comparison in report.comparisons)
    text = _grid("Memory beyond the loaded model, MiB: peak of the first call / held after it", report, value)
    return f"{text}\n\nThe weights themselves, loaded before: {weights} MiB."


def _errors(report: Report) -> str:
    def value(row: Row) -> str:
        return "-" if row.accuracy is None else f"{row.accuracy.error:.0e}"

    return _grid("Worst error against float64, relative to the largest value", report, value)


def _placement(report: Report) -> str:
    def value(row: Row) -> str:
        where = row.placement
        return "-" if where is None or where.total is None else f"{where.native}/{where.total}"

    headings = ["", *(comparison.model for comparison in report.comparisons)]
    backends = dict.fromkeys(row.key for c in report.comparisons for row in c.rows if row.kind is Kind.backend)
    return "## Nodes that run natively\n\n" + table(headings, ([key, *_cells(report, key, value)] for key in backends))


def _stages(stages: Stages) -> str:
    names = ("read", "order", "passes", "bind", "lower", "ours", "import", "vendor", "collector", "first call")

    def rows() -> Iterator[list[str]]:
        for model, backends in stages.items():
            for backend, seconds in backends.items():
                yield [f"{model}, {backend}", *(f"{seconds[name]:.3f}" if name in seconds else "-" for name in names)]

    return (
        "## Where a first call goes, processor seconds\n\n"
        "`ours` is reading torch's graph and finding the order of its inputs, passes and placement, binding, and "
        "lowering; `import` and `vendor` are the SDK's import and its own compilation; `collector` is Python's, whose "
        "time is left out of the others; the rest of the first call is Dynamo, AOTAutograd and one run.\n\n"
        + table(["", *names], rows())
    )


def _problems(report: Report) -> str:
    lines = [
        f"- {comparison.model}, {row.key}: {row.status.value}: {row.reason[:300]}"
        for comparison in report.comparisons
        for row in comparison.rows
        if row.reason
    ]
    return "## Rows that were not verified\n\n" + "\n".join(lines) if lines else ""
