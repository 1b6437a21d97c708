"""Tuning: any schedule is right, what is found is kept for other processes, and a file that is no use does no harm."""

from __future__ import annotations

import concurrent.futures
import logging
import sqlite3
import threading
from pathlib import Path

import pytest
import torch

import fairlead
from fairlead import ir
from fairlead.errors import OptionValueError
from fairlead_tvm import TVMOptions, backend
from fairlead_tvm._database import DATABASE, Database, Found
from fairlead_tvm._executable import TvmExecutable
from fairlead_tvm._layouts import input_layouts
from fairlead_tvm._rules import wanted
from fairlead_tvm._schedule import DEFAULT, Schedule, moves
from fairlead_tvm._tuning import _sites

_ONE = TVMOptions(threads="one")
_MOST = 60.0
"""More seconds than the search of a small graph takes."""


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "found" / "tvm.sqlite"
    monkeypatch.setenv(DATABASE, str(path))
    return path


def _product(rows: int = 20) -> tuple[ir.Graph, torch.Tensor]:
    b = ir.Builder("g")
    b.output(b.op("aten.linear.default", b.input(f"f32[{rows}, 64]", "x"), b.input("f32[48, 64]", "w")))
    return b.graph(), torch.randn(48, 64)


def _keep(graph: ir.Graph, baked: set[int], schedule: Schedule) -> None:
    """Have the database say that a schedule is best for every node."""
    for key in _sites(graph, input_layouts(graph, frozenset(baked), wanted), 1):
        Database.named().write(key, Found(schedule, 0.5, 1))


def _everything() -> tuple[ir.Graph, list[torch.Tensor], list[torch.Tensor]]:
    """A graph of every template, its inputs, and what eager makes of them."""
    b, given, expected = ir.Builder("g"), list[torch.Tensor](), list[torch.Tensor]()

    def inputs(*shapes: tuple[int, ...]) -> list[ir.Value]:
        given.extend(torch.randn(shape) for shape in shapes)
        return [b.input(f"f32[{', '.join(map(str, shape))}]") for shape in shapes]

    b.output(b.op("aten.linear.default", *inputs((29, 150), (100, 150))))
    expected.append(torch.nn.functional.linear(*given[-2:]))
    b.output(b.op("aten.linear.default", *inputs((2, 150), (192, 150))))
    expected.append(torch.nn.functional.linear(*given[-2:]))
    b.output(b.op("aten.bmm.default", *inputs((2, 27, 33), (2, 33, 20))))
    expected.append(torch.bmm(*given[-2:]))
    for x, w, transposed, groups in (
        ((2, 9, 7, 8), (35, 9, 3, 3), False, 1),
        ((1, 40, 5, 5), (70, 40, 1, 1), False, 1),
        ((1, 40, 7, 11), (40, 1, 3, 3), False, 40),
        ((1, 6, 5, 6), (6, 8, 2, 2), True, 1),
    ):
        step = 2 if transposed else 1
        settings = (step, step), (0, 0), (1, 1), transposed, (0, 0), groups
        b.output(b.op("aten.convolution.default", *inputs(x, w), None, *settings))
        expected.append(torch.convolution(*given[-2:], None, *settings))
    return b.graph(), given, expected


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(rows=5, panels=3, block=24, depth=50, copy="always"),
        Schedule(rows=8, panels=1, block=1, depth=1 << 20, copy="never", spread=False),
        Schedule(rows=3, panels=2, depth=16, copy="always"),
    ],
)
def test_whatever_schedule_is_chosen_results_are_right(schedule: Schedule) -> None:
    graph, given, expected = _everything()
    weights = {i: w for i, w in enumerate(given) if i % 2 and i != 5}
    _keep(graph, set(weights), schedule)
    run = backend.compile(graph, _ONE, weights)
    assert set(run._program.schedules.values()) == {schedule}  # type: ignore[attr-defined]
    found = run([x for i, x in enumerate(given) if i not in weights])
    torch.testing.assert_close(list(found), expected, rtol=1e-4, atol=1e-4)


def test_a_search_is_stored_and_not_done_twice(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph, w = _product()
    state = torch.get_rng_state()
    with caplog.at_level(logging.DEBUG, "fairlead.tvm"):
        first = backend.compile(graph, TVMOptions(threads="one", tune=_MOST), {1: w})
        assert [r.getMessage().partition(":")[0] for r in caplog.records] == ["aten.linear.default [20, 64] [48, 64]"]
        again = backend.compile(graph, TVMOptions(threads="one", tune=_MOST), {1: w})
    assert len(caplog.records) == 1
    assert isinstance(first, TvmExecutable)
    assert first.readable() == again.readable() == backend.compile(graph, _ONE, {1: w}).readable()
    assert torch.equal(torch.get_rng_state(), state)
    x = torch.randn(20, 64)
    torch.testing.assert_close(first([x])[0], x @ w.T, rtol=1e-4, atol=1e-4)
    (found,) = Database(database).read(_sites(graph, input_layouts(graph, frozenset([1]), wanted), 1)).values()
    assert found.tried == len(moves(DEFAULT, 1))


def test_a_search_that_is_over_before_it_began_finds_nothing() -> None:
    graph, w = _product()
    run = backend.compile(graph, TVMOptions(threads="one", tune=1e-9), {1: w})
    assert run._program.schedules == {}


def test_what_is_found_is_for_one_shape_one_number_of_threads_and_weights_that_are_packed() -> None:
    graph, w = _product()
    _keep(graph, {1}, Schedule(rows=4))
    assert backend.compile(graph, _ONE, {1: w})._program.schedules == {0: Schedule(rows=4)}
    assert backend.compile(graph, _ONE, {})._program.schedules == {}
    assert backend.compile(_product(21)[0], _ONE, {1: w})._program.schedules == {}
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert backend.compile(graph, TVMOptions(), {1: w})._program.schedules == {}
    finally:
        torch.set_num_threads(before)


def test_what_is_stored_keeps_the_schedules_that_it_was_compiled_with(database: Path) -> None:
    graph, w = _product()
    _keep(graph, {1}, Schedule(rows=4))
    run = backend.compile(graph, _ONE, {1: w})
    database.unlink()
    again = backend.load(backend.dump(run), graph, _ONE, {1: w})
    assert again.readable() == run.readable() != backend.compile(graph, _ONE, {1: w}).readable()


def _another_program(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE schedules (key TEXT PRIMARY KEY, found TEXT)")


def _out_of_range(path: Path) -> None:
    graph, _ = _product()
    _keep(graph, {1}, Schedule(rows=4))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schedules SET found = replace(found, '\"rows\":4', '\"rows\":4000')")


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (lambda path: path.write_bytes(b"no database " * 500), "DatabaseError: file is not a database"),
        (_another_program, "ForeignError: it is a database of another program"),
        (_out_of_range, "ValidationError: Expected `int` <= 32 - at `$.schedule.rows`"),
    ],
)
def test_a_file_that_is_no_use_costs_a_warning(
    database: Path, caplog: pytest.LogCaptureFixture, spoil: object, cause: str
) -> None:
    database.parent.mkdir()
    assert callable(spoil)
    spoil(database)
    graph, w = _product()
    for _ in range(2):
        run = backend.compile(graph, _ONE, {1: w})
    x = torch.randn(20, 64)
    torch.testing.assert_close(run([x])[0], x @ w.T, rtol=1e-4, atol=1e-4)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"the schedules that were tuned cannot be read: {cause}\n  from: {database}\n  next: delete the file, or name "
        f"another in {DATABASE}; until then programs are compiled as if nothing was tuned before"
    )


def test_a_file_of_another_program_is_not_written(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    database.parent.mkdir()
    _another_program(database)
    before = database.read_bytes()
    Database(database).write("key", Found())
    assert database.read_bytes() == before
    assert "cannot be written: ForeignError" in caplog.text


def test_a_file_that_cannot_be_looked_for_costs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATABASE, str(tmp_path / ("x" * 300)))
    assert Database.named().read(["key"]) == {}
    assert "cannot be read: OSError" in caplog.text


def test_the_file_is_in_the_folder_of_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Database.named().write("key", Found(tried=3))
    assert Database(tmp_path / "fairlead" / "tvm.sqlite").read(["key"]) == {"key": Found(tried=3)}
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Database.named().write("key", Found(tried=4))
    assert (tmp_path / "home" / ".cache" / "fairlead" / "tvm.sqlite").exists()


def test_many_write_the_first_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = {str(who): Found(Schedule(rows=who), 0.5, who) for who in range(1, 9)}
    for n in range(20):
        database = Database(tmp_path / f"{n}.sqlite")
        ready = threading.Barrier(len(found))

        def write(key: str, database: Database = database, ready: threading.Barrier = ready) -> None:
            ready.wait()
            database.write(key, found[key])
            assert key in database.read(found)

        with concurrent.futures.ThreadPoolExecutor(len(found)) as writers:
            list(writers.map(write, found))
        assert database.read(found) == found
    assert not caplog.records


def test_a_file_that_another_process_is_about_to_write_is_empty(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.parent.mkdir()
    database.touch()
    found = Found(Schedule(rows=3), 0.5, 3)
    assert Database(database).read(["a"]) == {}
    Database(database).write("a", found)
    assert Database(database).read(["a", "b"]) == {"a": found}
    assert not caplog.records


def test_seconds_below_zero_are_refused() -> None:
    with pytest.raises(OptionValueError, match=r"option 'tune' is -1\.0 \(float\), expected `?float`? >= 0"):
        fairlead.compile(torch.nn.Linear(2, 2), backend="tvm", options={"tune": -1.0})
