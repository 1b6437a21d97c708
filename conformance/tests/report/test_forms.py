"""The forms of a report for a CI and for people: what they say, and that nothing of a result can break them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from fairlead_conformance import Result, Status
from fairlead_conformance._report import Report, write_report
from fairlead_conformance._report._html import to_html
from fairlead_conformance._report._junit import to_junit
from fairlead_conformance._report._markdown import to_markdown
from fairlead_conformance._report._summary import KINDS, bars, groups, heat

from .browser import BROWSER, Reader, browsed
from .fixtures import CASES, KNOWN, STATUSES, report

EVERY = (
    Status.PASS_NATIVE,
    Status.PASS_NATIVE,
    Status.FAIL_STRIDE,
    Status.FAIL_STRIDE,
    Status.KNOWN_FAIL,
    Status.DECLINED,
    Status.HARNESS_ERROR,
)
EVIL = "</script><script>alert(1)</script><!-- | `x` _y_ <b>\x00\x1b[31m & \ud7ff \uffff"


def hostile() -> Report:
    """A report whose every text wants to be more than text."""
    found = report(EVERY)
    results = tuple(replace(r, detail=EVIL, check=r.check and EVIL, output=EVIL) for r in found.results)
    known = (replace(KNOWN, reason=EVIL, issue="javascript:alert(1)"),)
    backend = replace(found.backend, name=EVIL, versions={EVIL: EVIL}, numerics=(EVIL,))
    return replace(found, results=results, known=known, backend=backend, reasons=(EVIL,))


def data(page: str) -> dict[str, Any]:
    return json.loads(Reader(page).texts["script"][0])


def test_junit_says_once_what_became_of_each_case() -> None:
    root = ET.fromstring(to_junit(report(EVERY)))
    cases = {f"{s.get('name')}/{c.get('name')}": [e.tag for e in c] for s in root for c in s}
    outcomes = [[], [], ["failure"], ["failure"], ["skipped"], ["skipped"], ["error"]]
    assert cases == dict(zip([case.id for case in CASES], outcomes, strict=False))
    (ops,) = (suite for suite in root if suite.get("name") == "ops")
    assert [ops.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "2", "0", "2"]
    known = next(e for e in root.iter("skipped") if e.get("type") == "KNOWN_FAIL")
    assert known.get("message") == f"{KNOWN.reason} {KNOWN.issue}"


def test_junit_holds_texts_that_xml_cannot() -> None:
    root = ET.fromstring(to_junit(hostile()))
    assert "alert(1)" in next(root.iter("failure")).get("message", "")


def test_what_a_failing_case_printed_is_kept_in_junit_and_page() -> None:
    found = report(EVERY)
    printed = tuple(replace(r, output="assertion failed: x > 0" if r.status.failed else "") for r in found.results)
    found = replace(found, results=printed)
    assert [e.text for e in ET.fromstring(to_junit(found)).iter("system-out")] == ["assertion failed: x > 0"] * 2
    assert to_html(found).count("<pre>assertion failed: x &gt; 0</pre>") == 2


def test_the_summary_has_figures_reasons_failures_and_known_failures() -> None:
    text = to_markdown(report(EVERY))
    assert text.startswith("# acme: incomplete\n")
    assert "**40.0% correct** (2 of the 5 cases taken on)" in text
    assert "**28.5% coverage** (2 of 7 cases)" in text
    assert "Of core ops 20.0% are native (1 of 5 samples)." in text
    assert "- 1 cases met a defect of the suite itself\n" in text
    assert "| ops | 1 |  | 1 | 1 | 2 |  | 5 |\n" in text
    assert "| 2 | FAIL_STRIDE | values | output 0: 3 of 16 elements differ | `ops/aten.add.Tensor/f32/s001" not in text
    assert "| 2 | FAIL_STRIDE | values | output \\#: \\# of \\# elements differ | `ops/aten.add.Tensor/f32/s001" in text
    assert "| `ops/aten.mm.default/bf16/s000` | FAIL_MISMATCH | 30 days | 2026-12-31 |" in text
    assert "| <https://example.org/acme/issues/7> |" in text


def test_every_row_of_the_summary_has_the_columns_of_its_table() -> None:
    rows = [line for line in to_markdown(hostile()).splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert set(widths) == {9, 6, 7}
    assert "\n<" not in to_markdown(hostile())


def test_a_bar_and_a_cell_count_every_result_once() -> None:
    found = report(EVERY)
    assert sum(bar.total for bar in bars(found.results)) == len(found.results)
    assert [bar.label for bar in bars(found.results)] == ["lifecycle", "ops", "training"]
    cells = heat(found.results)
    assert cells.dtypes == ("bf16", "f32")
    assert {op: [c.worst for c in row.values()] for op, row in cells.rows.items()} == {
        "aten.add.Tensor": ["failed"],
        "aten.mm.default": ["known", "failed"],
        "aten.sort.default": ["declined"],
    }


def test_failures_are_one_group_where_only_their_numbers_differ() -> None:
    texts = ["3 of 16 elements, by 1.5e-3", "4 of 8 elements, by 2", "4 of 8 values, by 2", "nan, at [0, 1] of 0x7f"]
    found = groups([Result(id=f"ops/a{i}/f32/s0", status=Status.FAIL_RUN, detail=t) for i, t in enumerate(texts)])
    assert [(group.detail, group.subjects) for group in found] == [
        ("# of # elements, by #", ("a0", "a1")),
        ("# of # values, by #", ("a2",)),
        ("#, at # of #", ("a3",)),
    ]


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    page = to_html(report(EVERY))
    assert Reader(page).references == [f"href={KNOWN.issue}"]
    assert re.findall(r"url\(|@import|import\(|sourceMappingURL|fetch\(|XMLHttpRequest", page) == []
    assert "".join(Reader(page).texts["title"]) == "acme: incomplete · Fairlead conformance"


def test_every_result_is_in_the_page_with_its_status_and_message() -> None:
    found = report(EVERY)
    read = data(to_html(found))
    shown = [(name, read["statuses"][status], read["details"][detail]) for name, status, detail, _ in read["cases"]]
    kinds = ["native", "native", "failed", "failed", "known", "declined", "lost"]
    assert shown == [(r.id, [r.status, k], r.detail) for r, k in zip(found.results, kinds, strict=True)]
    assert set(kinds) | {"extern"} == set(KINDS)


def test_the_page_of_an_incomplete_run_says_why() -> None:
    assert "1 cases met a defect of the suite itself" in to_html(report(EVERY))
    assert "supports no claim" not in to_html(report(STATUSES))


def test_hostile_texts_stay_texts() -> None:
    page, plain = to_html(hostile()), to_html(report(EVERY))
    assert len(Reader(page).texts["script"]) == len(Reader(plain).texts["script"])
    assert "b" not in Reader(page).texts
    assert Reader(page).references == []
    assert data(page)["details"] == [EVIL]


def test_all_forms_are_written_beside_each_other(tmp_path: Path) -> None:
    write_report(report(), tmp_path / "new")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == [
        "junit.xml",
        "report.html",
        "report.json",
        "summary.md",
    ]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_the_page_without_overflow_and_finds_cases(tmp_path: Path, width: int) -> None:
    steps = """
      root.dataset.before = root.dataset.found;
      const search = document.getElementById("search");
      search.value = "MM bf16";
      search.dispatchEvent(new Event("input"));
      root.dataset.searched = document.getElementById("rows").innerText;
      search.value = "";
      document.querySelector("[data-kind=failed]").click();
      root.dataset.pressed = root.dataset.found;
      document.querySelector("[data-kind=failed]").click();
      document.querySelector("[data-find]").click();
      root.dataset.cell = search.value + " " + root.dataset.found;
    """
    long = replace(report(EVERY), reasons=("x" * 300,), backend=replace(report().backend, name="a-" + "long-name" * 9))
    found = browsed(to_html(long), tmp_path, width, steps)
    assert found["width"] == str(width)
    assert found["overflow"] == "0"
    assert found["before"] == "7"
    assert "ops/aten.mm.default/bf16/s000" in found["searched"]
    assert found["pressed"] == "2"
    assert found["cell"] == "ops/aten.add.Tensor/f32/ 2"
