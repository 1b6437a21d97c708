"""A report as JUnit XML, which every CI shows: a suite for each family, a test for each case."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from fairlead_conformance._report._data import KnownFailure, Report
from fairlead_conformance._report._summary import kind
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["to_junit"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: Report) -> str:
    """The XML. A failure is a failure, a harness error an error; what was declined, known or not run is skipped.

    JUnit knows no more than these. The figures are the report's, not a CI's count of the tests that were not skipped.
    """
    root = ET.Element("testsuites", name=f"fairlead-conformance {report.backend.name}")
    known = {entry.id: entry for entry in report.known}
    for family, results in itertools.groupby(report.results, lambda result: result.id.partition("/")[0]):
        root.append(_suite(family, list(results), report, known))
    ET.indent(root)
    return _NOT_XML.sub("\ufffd", ET.tostring(root, encoding="unicode", xml_declaration=True)) + "\n"


def _suite(family: str, results: list[Result], report: Report, known: dict[str, KnownFailure]) -> ET.Element:
    kinds = [kind(result.status) for result in results]
    errors = sum(result.status is Status.HARNESS_ERROR for result in results)
    passed = kinds.count("native") + kinds.count("extern")
    suite = ET.Element(
        "testsuite",
        name=family,
        tests=str(len(results)),
        failures=str(kinds.count("failed")),
        errors=str(errors),
        skipped=str(len(results) - passed - kinds.count("failed") - errors),
        time=f"{sum(result.seconds for result in results):.3f}",
        timestamp=report.run.started.isoformat(timespec="seconds"),
    )
    for result in results:
        _, _, name = result.id.partition("/")
        case = ET.SubElement(
            suite, "testcase", classname=f"{report.backend.name}.{family}", name=name, time=f"{result.seconds:.3f}"
        )
        case.extend(_outcome(result, known.get(result.id)))
        if result.output:
            ET.SubElement(case, "system-out").text = result.output
    return suite


def _outcome(result: Result, entry: KnownFailure | None) -> Iterator[ET.Element]:
    if result.status.failed:
        failure = ET.Element("failure", type=result.status, message=f"{result.check}: {result.detail}")
        failure.text = f"{result.id}\n{result.detail}"
        yield failure
    elif result.status is Status.HARNESS_ERROR:
        yield ET.Element("error", type=result.status, message=result.detail)
    elif result.status is Status.KNOWN_FAIL and entry is not None:
        yield ET.Element("skipped", type=result.status, message=f"{entry.reason} {entry.issue}")
    elif not result.status.passed:
        yield ET.Element("skipped", type=result.status, message=result.detail)
