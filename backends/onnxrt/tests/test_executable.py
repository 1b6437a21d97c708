"""What ONNX Runtime's executable promises beyond tests/test_executables.py: memory for large results."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from fairlead import interpret
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Symbol, TensorType, Value
from fairlead_onnxrt import backend
from fairlead_onnxrt._target import contends


def tensor(id_: int, *shape: int | str, dtype: DType = DType.f32) -> Value:
    return Value(id_, TensorType(dtype, shape))


def graph(inputs: list[Value], nodes: list[Node], *outputs: Value, symbols: tuple[Symbol, ...] = ()) -> Graph:
    return Graph(
        "g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(Output(o) for o in outputs), symbols
    )


def test_importing_the_backend_loads_neither_the_sdk_nor_torch() -> None:
    code = "import fairlead_onnxrt, sys; print({'torch', 'onnxruntime', 'onnx_ir', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_the_probe_names_the_versions_and_a_device() -> None:
    probe = backend.probe()
    assert probe.ok
    assert probe.devices
    assert set(probe.versions) == {"onnxruntime", "onnx-ir"}


@pytest.mark.parametrize("dtype", [DType.f32, DType.f16, DType.f64, DType.i64, DType.i32, DType.u8, DType.bool])
@pytest.mark.parametrize("size", [512, "n"])
def test_a_large_result_is_memory_of_its_own_that_outlives_everything(dtype: DType, size: int | str) -> None:
    symbols = (Symbol("n", 1, None, (0, 0)),) if size == "n" else ()
    x, y, out, few = (tensor(i, size, n, dtype=dtype) for i, n in enumerate((4096, 4096, 4096, 1)))
    op = "aten.bitwise_and.Tensor" if dtype is DType.bool else "aten.maximum.default"
    nodes = [
        Node(op, (x, y), (out,)),
        Node("aten.slice.Tensor", (out, 1, 0, 1, 1), (few,)),
    ]
    run = backend.compile(graph([x, y], nodes, few, out, symbols=symbols), backend.options_type(), {})
    one = torch.ones(512, 4096, dtype=interpret.torch_dtype(dtype))
    small, large = run([one, one])
    again = run([one * 0, one * 0])
    del run
    assert [t.shape for t in (small, large)] == [(512, 1), (512, 4096)]
    assert torch.equal(large, one)
    assert not again[1].any()
    large.zero_()
    assert small.all()


def test_a_transposed_input_is_read_where_it_lies_and_any_other_is_right_too() -> None:
    x, w, out = tensor(0, 2, 4), Value(1, TensorType(DType.f32, (4, 3), (1, 4))), tensor(2, 2, 3)
    run = backend.compile(graph([x, w], [Node("aten.mm.default", (x, w), (out,))], out), backend.options_type(), {})
    given, weight = torch.randn(2, 4), torch.randn(3, 4)
    torch.testing.assert_close(run([given, weight.t()])[0], given @ weight.t())
    assert run._runs._idle[0]._addresses == [given.data_ptr(), weight.data_ptr()]
    for other in (weight.t().contiguous(), weight.t().expand(1, 4, 3)[0], torch.randn(8, 3)[::2]):
        torch.testing.assert_close(run([given, other])[0], given @ other)


def test_the_memory_of_a_large_result_is_used_again_once_it_is_dropped() -> None:
    x, out = tensor(0, 512, 1024), tensor(1, 512, 1024)
    run = backend.compile(graph([x], [Node("aten.relu.default", (x,), (out,))], out), backend.options_type(), {})
    given = torch.randn(512, 1024)
    first = run([given])[0].data_ptr()  # dropped at once
    kept = run([given])
    assert kept[0].data_ptr() == first
    assert run([given])[0].data_ptr() != first


TINY = torch.tensor([1e-40, -1e-40, 1.0])


def compiled(graph: Graph, **options: Any) -> Any:
    return backend.compile(graph, backend.options_type(**options), {})


CONTENDING = pytest.param(
    1024, True, id="rows that contend", marks=pytest.mark.skipif(not contends(), reason="the processor's do not")
)


@pytest.mark.parametrize(("terms", "longer"), [CONTENDING, pytest.param(1040, False, id="other rows")])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows", [40, "n"])
def test_rows_of_a_product_are_kept_from_contending(terms: int, longer: bool, biased: bool, rows: int | str) -> None:
    x, w, b, out = tensor(0, 2, rows, terms), tensor(1, 768, terms), tensor(2, 768), tensor(3, 2, rows, 768)
    node = Node("aten.linear.default", (x, w, b if biased else None), (out,))
    g = graph([x, w, b], [node], out, symbols=(Symbol("n", 0, None, (0, 1)),) if rows == "n" else ())
    weights = {1: torch.randn(768, terms), 2: torch.randn(768)}
    given = torch.randn(2, 40, terms)
    given[0, 0, 0], given[1, 1, 1] = torch.nan, torch.inf
    executable: Any = backend.compile(g, backend.options_type(), weights)
    expected = torch.nn.functional.linear(given, weights[1], weights[2] if biased else None)
    torch.testing.assert_close(executable([given])[0], expected, equal_nan=True, rtol=1e-4, atol=1e-4)
    assert ("Concat" in executable.readable()["onnx.txt"]) is longer
    assert "Pad" not in executable.readable()["optimized.onnx.txt"]  # the weight's is made once


def attending(dtype: DType = DType.f32) -> Graph:
    """Rows of a softmax, and twice what came beside them."""
    x, y, rows, twice = tensor(0, 2, 3, dtype=dtype), tensor(1, 3), tensor(2, 2, 3, dtype=dtype), tensor(3, 3)
    nodes = [Node("aten._softmax.default", (x, -1, False), (rows,)), Node("aten.add.Tensor", (y, y), (twice,))]
    return graph([x, y], nodes, rows, twice)


def test_numbers_that_are_nearly_zero_are_zero_beside_a_softmax_alone() -> None:
    x = torch.tensor([[0.0, -100.0, 0.0], [0.0, 1.0, 2.0]])
    rows, twice = compiled(attending())([x, TINY])
    assert rows[0, 1] == 0
    torch.testing.assert_close(rows, torch.softmax(x, -1))
    assert twice[:2].count_nonzero() == 0
    y, other = tensor(0, 3), tensor(1, 3)
    plain = compiled(graph([y], [Node("aten.add.Tensor", (y, y), (other,))], other))
    assert torch.equal(plain([TINY])[0], TINY + TINY)


def test_they_are_what_they_are_where_numbers_of_float64_would_be_zero_as_well() -> None:
    rows, twice = compiled(attending(DType.f64))([torch.tensor([[0.0, -710.0, 0.0]] * 2, dtype=torch.float64), TINY])
    assert 0 < rows[0, 1] < sys.float_info.min
    assert torch.equal(twice, TINY + TINY)


def test_whether_they_are_zero_is_an_option(capfd: pytest.CaptureFixture[str]) -> None:
    kept = compiled(attending(), session_config={"session.set_denormal_as_zero": "0"})
    assert not capfd.readouterr().err  # of entries that are given twice ONNX Runtime warns
    assert torch.equal(kept([torch.zeros(2, 3), TINY])[1], TINY + TINY)


@pytest.mark.parametrize("user", [False, True])
def test_the_callers_thread_is_left_as_it_was(user: bool) -> None:
    """In a process of its own: ONNX Runtime sets the thread that makes the first session."""
    code = f"""
import torch
from fairlead.ir import Builder
from fairlead_onnxrt import backend
tiny = torch.tensor([1e-40, 1.0])
torch.set_flush_denormal({user})
for op, args in (("relu", ()), ("_softmax", (-1, False))):
    b = Builder("g")
    b.output(b.op("aten." + op + ".default", b.input("f32[2, 2]", "x"), *args))
    run = backend.compile(b.graph(), backend.options_type(), {{}})
    for _ in range(2):
        run([torch.ones(2, 2)])
        print(int((tiny * 1.0).count_nonzero()), end=" ")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["1" if user else "2"] * 4
