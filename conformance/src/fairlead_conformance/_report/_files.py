"""Reports on disk: written in every form, read with every field checked."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairlead.errors import ArgumentError
from fairlead_conformance._report._data import FORMAT, Report
from fairlead_conformance._report._html import to_html
from fairlead_conformance._report._junit import to_junit
from fairlead_conformance._report._markdown import to_markdown

__all__ = ["read_report", "write_report"]


def write_report(report: Report, directory: Path) -> Path:
    """Write the report into a directory, which is made where it is missing, and give the path of its JSON.

    ``report.json`` for programs, ``junit.xml`` and ``summary.md`` for a CI, ``report.html`` for people.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("junit.xml", to_junit(report)),
        ("summary.md", to_markdown(report)),
        ("report.html", to_html(report)),
    ):
        (directory / name).write_text(text, "utf-8")
    path = directory / "report.json"
    path.write_bytes(_json(report))
    return path


def _json(report: Report) -> bytes:
    """A field on each line, and a result on each line: so that text tools can search and compare reports."""
    head = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(report, results=())), indent=1)
    lines = b",\n  ".join(msgspec.json.encode(result) for result in report.results)
    return head.replace(b'\n "results": []', b'\n "results": [\n  ' + lines + b"\n ]", 1) + b"\n"


def read_report(path: Path) -> Report:
    """The report of a file. Raises `fairlead.errors.ArgumentError` where it is not one, and says at which field."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError) as error:
        raise ArgumentError(
            f"not a report of conformance: {error}",
            where=str(path),
            next=f"give the report.json of a run, in format {FORMAT}; see: fairlead-conformance schema",
        ) from error
