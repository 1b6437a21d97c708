"""Compiled graphs: what is fused, sizes, weights, errors and threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import torch

from fairlead import ir
from fairlead.backend import Executable
from fairlead_tvm import TVMOptions, backend
from fairlead_tvm._openmp import POINTER, openmp_is_there

_ONE = TVMOptions(threads="one")


def _compiled(b: ir.Builder, *constants: tuple[int, torch.Tensor], options: TVMOptions = _ONE) -> Executable:
    return backend.compile(b.graph(), options, dict(constants))


def _linear(shape: str, rows: int, columns: int) -> ir.Builder:
    b = ir.Builder("g")
    x, w, bias = b.input(shape, "x"), b.input(f"f32[{rows}, {columns}]", "w"), b.input(f"f32[{rows}]", "bias")
    b.output(b.op("aten.gelu.default", b.op("aten.linear.default", x, w, bias)))
    return b


@pytest.mark.parametrize("rows", ["64", "b"])
def test_accumulators_of_a_product_are_registers(rows: str) -> None:
    """What is taken from TVM's pool of memory is written and read again at each step of the inner loop."""
    w, bias = torch.randn(64, 64), torch.randn(64)
    run = _compiled(_linear(f"f32[{rows}, 64]", 64, 64), (1, w), (2, bias))
    assert b"AllocWorkspace" not in backend.dump(run)
    copied = _compiled(_linear(f"f32[{rows}, 2048]", 64, 2048), (1, torch.randn(64, 2048)), (2, bias))
    assert b"AllocWorkspace" in backend.dump(copied), "sums of parts of the inner dimension are held in the pool"


@pytest.mark.parametrize("inner", [19, 1024, 2500])
def test_a_product_of_rows_that_vary_is_right_whatever_is_left_over_of_its_tiles(inner: int) -> None:
    w, bias = torch.randn(230, inner) / inner**0.5, torch.randn(230)
    run = _compiled(_linear(f"f32[b, {inner}]", 230, inner), (1, w), (2, bias))
    for rows in (2, 13, 14, 15, 28, 113, 224, 301):
        x = torch.randn(rows, inner)
        expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, bias))
        torch.testing.assert_close(run([x])[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 5, 14, 29, 113])
@pytest.mark.parametrize("columns", [7, 32, 100])
def test_a_product_is_right_whatever_is_left_over_of_its_tiles(rows: int, columns: int) -> None:
    x, w, bias = torch.randn(rows, 19), torch.randn(columns, 19), torch.randn(columns)
    expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, bias))
    run = _compiled(_linear(f"f32[{rows}, 19]", columns, 19), (1, w), (2, bias))
    torch.testing.assert_close(run([x])[0], expected)


def test_symbols_are_compiled_once_for_all_sizes() -> None:
    w, bias = torch.randn(40, 16), torch.randn(40)
    run = _compiled(_linear("f32[b, s, 16]", 40, 16), (1, w), (2, bias))
    for shape in ((2, 1), (2, 3), (7, 5), (2, 100)):
        x = torch.randn(*shape, 16)
        expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, bias))
        torch.testing.assert_close(run([x])[0], expected)


def test_new_weights_are_used_without_compiling_again() -> None:
    w, bias = torch.randn(40, 16), torch.randn(40)
    run = _compiled(_linear("f32[3, 16]", 40, 16), (1, w), (2, bias))
    x = torch.randn(3, 16)
    run.refit({1: 2 * w, 2: bias})  # type: ignore[attr-defined]
    expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, 2 * w, bias))
    torch.testing.assert_close(run([x])[0], expected)


def test_results_are_memory_of_their_own() -> None:
    b = ir.Builder("g")
    b.output(b.op("aten.relu.default", b.input("f32[100]", "x")))
    run = _compiled(b)
    first = run([torch.ones(100)])[0]
    run([torch.zeros(100)])
    assert bool((first == 1).all())


def test_a_nan_stays_one_and_infinities_are_subtracted() -> None:
    b = ir.Builder("g")
    x = b.input("f32[40]", "x")
    b.output(b.op("aten.sub.Tensor", x, x, 1))
    b.output(b.op("aten.relu.default", x))
    b.output(b.op("aten.isnan.default", x))
    x_ = torch.tensor([float("nan"), float("inf"), -0.0, 1.0] * 10)
    difference, positive, is_nan = _compiled(b)([x_])
    torch.testing.assert_close(difference, x_ - x_, equal_nan=True)
    torch.testing.assert_close(positive, x_.relu(), equal_nan=True)
    assert is_nan.tolist() == x_.isnan().tolist()


def test_an_index_that_is_out_of_range_is_an_error() -> None:
    b = ir.Builder("g")
    b.output(b.op("aten.embedding.default", b.input("f32[10, 4]", "w"), b.input("i64[3]", "i"), -1, False, False))
    run = _compiled(b)
    with pytest.raises(IndexError, match=r"out of range for 10 elements in aten\.embedding\.default"):
        run([torch.randn(10, 4), torch.tensor([0, 10, 1])])


def test_threads_call_the_same_executable_at_once() -> None:
    w, bias = torch.randn(64, 64), torch.randn(64)
    run = _compiled(_linear("f32[50, 64]", 64, 64), (1, w), (2, bias))
    inputs = [torch.randn(50, 64) for _ in range(4)]
    expected = [torch.nn.functional.gelu(torch.nn.functional.linear(x, w, bias)) for x in inputs]
    wrong: list[int] = []

    def call(i: int) -> None:
        for _ in range(20):
            if not torch.allclose(run([inputs[i]])[0], expected[i], atol=1e-5):
                wrong.append(i)

    workers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_what_is_stored_runs_without_being_compiled() -> None:
    w, bias = torch.randn(40, 16), torch.randn(40)
    b = _linear("f32[b, 16]", 40, 16)
    constants = {1: w, 2: bias}
    run = backend.compile(b.graph(), _ONE, constants)
    again = backend.load(backend.dump(run), b.graph(), _ONE, constants)
    x = torch.randn(9, 16)
    torch.testing.assert_close(again([x])[0], run([x])[0], rtol=0, atol=0)


def test_a_forked_child_does_not_wait_for_threads_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    b = ir.Builder("g")
    x = b.input("f32[400, 400]", "x")
    b.output(b.op("aten.mul.Tensor", x, x))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run = _compiled(b, options=TVMOptions())
    finally:
        torch.set_num_threads(before)
    threaded = run._program  # type: ignore[attr-defined]
    x_ = torch.randn(400, 400)
    torch.testing.assert_close(run([x_])[0], x_ * x_)
    monkeypatch.setattr("os.getpid", lambda: -1)
    torch.testing.assert_close(run([x_])[0], x_ * x_)
    assert run._program is not threaded  # type: ignore[attr-defined]
    torch.set_num_threads(2)
    try:
        assert _compiled(b, options=TVMOptions())._threads == 1  # type: ignore[attr-defined]
    finally:
        torch.set_num_threads(before)


def _shared() -> tuple[ir.Graph, torch.Tensor]:
    """A graph with a loop that is worth sharing."""
    b = ir.Builder("g")
    x = b.input("f32[400, 400]", "x")
    b.output(b.op("aten.mul.Tensor", x, x))
    return b.graph(), torch.randn(400, 400)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


_OBSERVED = """
import os, threading, torch
from fairlead import ir
from fairlead_tvm import TVMOptions, backend
from fairlead_tvm._openmp import POINTER, openmp_is_there

def tasks():
    return len(os.listdir("/proc/self/task"))

torch.set_num_threads(2)
b = ir.Builder("g")
x = b.input("f32[400, 400]", "x")
b.output(b.op("aten.mul.Tensor", x, x))
run = backend.compile(b.graph(), TVMOptions(), {})
allowed, given = os.sched_getaffinity(0), torch.randn(400, 400)
run([given])
before = tasks()
given * given
print(before > 1, tasks() == before, os.sched_getaffinity(0) == allowed)
"""


@pytest.mark.skipif(not openmp_is_there(), reason="torch has no OpenMP of GCC's kind here")
def test_loops_are_shared_among_torchs_threads_which_stay_free_to_move() -> None:
    found = subprocess.run([sys.executable, "-c", _OBSERVED], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "True", "True"], found.stderr


def test_a_process_does_with_exceptions_what_it_did() -> None:
    """In a process of its own: TVM replaces what is called with them when it is imported."""
    code = """
import sys, torch
from fairlead.ir import Builder
from fairlead_tvm import TVMOptions, backend
before = sys.excepthook
b = Builder("g")
b.output(b.op("aten.relu.default", b.input("f32[2]", "x")))
backend.compile(b.graph(), TVMOptions(), {})([torch.ones(2)])
print("tvm" in sys.modules, sys.excepthook is before)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "True"], found.stderr


@pytest.mark.usefixtures("two_threads")
def test_a_stored_program_shares_its_loops_too() -> None:
    graph, x = _shared()
    data = backend.dump(backend.compile(graph, TVMOptions(), {}))
    assert (POINTER.encode() in data) == openmp_is_there()
    assert POINTER.encode() not in backend.dump(backend.compile(graph, _ONE, {}))
    torch.testing.assert_close(backend.load(data, graph, TVMOptions(), {})([x]), [x * x])


@pytest.mark.usefixtures("two_threads")
def test_a_program_of_several_threads_runs_on_one() -> None:
    graph, x = _shared()
    run = backend.compile(graph, TVMOptions(), {})
    torch.set_num_threads(1)
    torch.testing.assert_close(run([x]), [x * x])
