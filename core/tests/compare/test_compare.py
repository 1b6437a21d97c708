"""Whole runs of the command: what becomes of each row, and of the process."""

from __future__ import annotations

import html.parser
import json
import re
from pathlib import Path

import msgspec
import pytest

from fairlead._compare import Kind, Report, Row, Settings, Status, Subject, entries, to_html, to_json
from fairlead._compare._messages import Load, Loaded
from fairlead._compare._process import LostError, Process

from .conftest import Run, fairlead


def row(run: Run, name: str) -> Row:
    (comparison,) = run.report.comparisons
    (found,) = [r for r in comparison.rows if r.name == name and r.kind is Kind.backend]
    return found


def test_standard_output_is_json_and_nothing_else(run: Run) -> None:
    assert run.report.schema == 1, run.stderr
    assert to_json(run.report).decode() == run.stdout


def test_the_reference_backend_is_verified_and_measured(run: Run) -> None:
    found = row(run, "eager")
    assert found.status is Status.ok
    assert found.accuracy is not None
    assert found.accuracy.exact
    assert found.accuracy.cases == ("example", "flipped")
    assert found.placement is not None
    assert found.placement.share == 1.0
    assert found.placement.graphs == 1
    assert found.times is not None
    assert len(found.times.turns) == run.report.settings.turns
    assert found.speedup is not None
    assert found.first is not None
    assert found.first.cpu > 0


def test_a_wrong_backend_is_caught_and_is_the_exit_status(run: Run) -> None:
    assert run.status == 1
    assert not run.report.verified
    found = row(run, "wrong")
    assert found.status is Status.wrong
    assert re.search(r"example: 0 is off by 1\.0e-03, eager by \d", found.reason)


def test_a_result_that_a_later_call_overwrites_is_copied_or_caught(run: Run) -> None:
    found = row(run, "reusing")
    assert found.status is Status.wrong
    assert "a later call overwrote the 0 that an earlier one returned" in found.reason


def test_a_crash_costs_one_row(run: Run) -> None:
    found = row(run, "crashing")
    assert found.status is Status.crashed
    assert found.reason.startswith("its process ended with signal SIGABRT; it had written: ")
    assert found.times is None
    assert row(run, "picky").status is Status.ok


def test_a_backend_that_is_not_ready_has_a_row_with_the_reason(run: Run) -> None:
    found = row(run, "absent")
    assert (found.status, found.reason) == (Status.not_ready, "its driver is missing")


def test_what_was_declined_is_in_the_row_with_its_reason(run: Run) -> None:
    placement = row(run, "picky").placement
    assert placement is not None
    assert (placement.native, placement.total) == (2, 3)
    (decline,) = placement.declines
    assert (decline.op, decline.reason) == ("aten.gelu.default", "no such kernel")


class Page(html.parser.HTMLParser):
    """Every tag, attribute and text of a page; raises on tags that are closed wrongly."""

    VOID = ("meta", "br", "link", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.headings: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "th":
            self.headings.append(data)


def test_the_html_report_is_one_well_formed_file_that_needs_no_other(run: Run) -> None:
    page = Page(run.html)
    assert page.open == []
    assert "http" not in run.html
    references = [value for name, value in page.attributes if name in ("src", "href", "xlink:href")]
    assert [value for value in references if not value.startswith("#")] == []
    assert not re.search(r"url\((?!#)|@import", run.html)


def test_the_html_report_has_every_row_reason_and_plot(run: Run) -> None:
    page = Page(run.html)
    (comparison,) = run.report.comparisons
    assert [row.key for row in comparison.rows] == [
        text for text in page.headings if text in {r.key for r in comparison.rows}
    ]
    assert "its driver is missing" in run.html
    assert "no such kernel" in run.html
    assert run.html.count("<svg") == 5


def test_names_and_reasons_are_text_in_the_html_report(run: Run) -> None:
    (comparison,) = run.report.comparisons
    hostile = msgspec.structs.replace(comparison, model="<script>alert(1)</script>")
    page = to_html(msgspec.structs.replace(run.report, comparisons=(hostile,)))
    assert "<script" not in page


def test_json_reads_back_as_the_same_report(run: Run) -> None:
    assert msgspec.json.decode(to_json(run.report), type=Report) == run.report


def test_the_table_names_every_row_and_the_exit_status_is_that_of_the_rows(vendors: Path) -> None:
    arguments = ("--baseline", "none", "--seconds", "0", "--repeat", "1", "--threads", "1")
    done = fairlead("compare", "mlp", "--backends", "picky", "--dynamic", "--train", *arguments, site=vendors)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "training step, dynamic sizes; 0 float32[4, 64]" in text
    assert re.search(r"PyTorch eager +ok +1\.00x", text)
    assert re.search(r"picky +ok ", text)
    assert "picky declined 1 x aten.gelu.default: no such kernel (ran on " in text


def test_without_fallback_a_declined_node_is_a_failure_and_shared_weights_are_offered_to_nobody(vendors: Path) -> None:
    arguments = ("--baseline", "none", "--seconds", "0", "--repeat", "1", "--threads", "1", "--share-weights")
    done = fairlead("compare", "mlp", "--backends", "picky,holding", "--no-fallback", *arguments, site=vendors)
    assert done.returncode == 1, done.stderr
    text = done.stdout
    assert "FL401" in text
    assert re.search(r"weights \d MiB, shared\n", text)
    assert re.search(r"holding +ok ", text), text


def test_weights_and_inputs_of_all_rows_are_turned_into_the_type_that_is_asked_for(vendors: Path) -> None:
    arguments = ("--baseline", "none", "--seconds", "0", "--repeat", "1", "--threads", "1", "--json", "-")
    whole, half = (
        json.loads(fairlead("compare", "mlp", "--backends", "picky", *arguments, *dtype, site=vendors).stdout)
        for dtype in ((), ("--dtype", "bf16"))
    )
    (first,), (second,) = whole["comparisons"], half["comparisons"]
    assert [row["status"] for row in second["rows"]] == ["ok", "ok"]
    assert 1.5 < first["weights"] / second["weights"] < 2.5
    assert all(shape.startswith("bfloat16") for shape in second["inputs"].values())


@pytest.mark.parametrize(
    ("arguments", "code", "next_"),
    [
        (("compare", "berd"), "FL701", "did you mean 'bert'?"),
        (("compare", "mlp", "--backends", "egaer"), "FL101", "eager"),
        (("compare", "--train"), "FL203", "--list"),
        (("compare", "mlp", "--html", "/no/such/folder/report.html"), "FL203", "name a file in a folder that exists"),
    ],
)
def test_usage_errors_are_three_lines_and_exit_status_2(arguments: tuple[str, ...], code: str, next_: str) -> None:
    done = fairlead(*arguments)
    assert done.returncode == 2
    first, second, third = done.stderr.strip().splitlines()
    assert first.startswith(code)
    assert second.startswith("  from: ")
    assert next_ in third


def test_the_bundled_models_are_listed() -> None:
    done = fairlead("compare", "--list")
    assert done.returncode == 0
    assert "resnet50" in done.stdout


def test_a_factory_that_fails_says_so_in_three_lines(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def make():\n    raise OSError('disk full')\n")
    done = fairlead("compare", f"{path}:make", "--backends", "eager", "--baseline", "none")
    assert done.returncode == 2
    assert "raised OSError: disk full" in done.stderr.splitlines()[0]


def test_a_worker_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    request = Load(
        subject=Subject("eager", "eager"),
        spec="mlp",
        folder=str(tmp_path),
        training=False,
        dynamic=False,
        fallback=True,
        threads=1,
    )
    with Process(tmp_path, threads=1, timeout=0.01) as process, pytest.raises(LostError) as caught:
        process.ask(request, Loaded)
    assert (caught.value.status, caught.value.reason) == (Status.timeout, "no answer to load within 0.01 seconds")


def test_rows_come_in_the_order_of_what_is_compared_with_what() -> None:
    settings = Settings(backends=("a", "b"), baselines=("inductor",))
    found = entries(settings, {"b": "no device"})
    assert [(e.name, e.kind.value, e.unready) for e in found] == [
        ("eager", "eager", ""),
        ("inductor", "baseline", ""),
        ("a", "backend", ""),
        ("b", "backend", "no device"),
    ]
