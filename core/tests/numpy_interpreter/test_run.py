"""The interpreter around the ops: inputs, symbols, memory, random numbers, control flow, errors."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import msgspec
import numpy as np
import pytest

from fairlead.errors import ArgumentError, InterpretError
from fairlead.ir import (
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Location,
    Node,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorData,
    TensorType,
    Token,
    Value,
    opset,
    verify,
)
from fairlead.numpy import run, supports

from ._call import call

ROW = TensorType(DType.f32, (4,))


def value(id: int, dtype: DType, *shape: int | str) -> Value:  # noqa: A002 - as the field is called
    return Value(id, TensorType(dtype, shape))


def graph(inputs: list[Value], nodes: list[Node], outputs: list[Any], symbols: tuple[Symbol, ...] = ()) -> Graph:
    return verify(
        Graph("g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(map(Output, outputs)), symbols)
    )


def test_sizes_are_read_from_the_inputs_and_computed_where_they_are_used() -> None:
    x, y = value(0, DType.f32, "b", 3), value(1, DType.f32, "3*b")
    view = Node("aten.view.default", (x, (DimExpr("3*b"),)), (y,))
    flat = graph([x], [view], [y, DimExpr("b + 1"), None], (Symbol("b", 1, 8, (0, 0)),))
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = run(flat, [data])
    np.testing.assert_array_equal(found[0], data.ravel())
    assert found[1:] == (3, None)


def test_an_int_input_gives_a_symbol_its_value() -> None:
    n, y = Value(0, ScalarType(DType.i64)), value(1, DType.i64, "n")
    args = (0, DimExpr("n"), 1, Token("dtype", "i64"), None, None, None)
    symbol = Symbol("n", 0, None, (0, None))
    item = Input(n, Role.symbol, "n")
    counts = Graph("g", Kind.inference, (item,), (Node("aten.arange.start_step", args, (y,)),), (Output(y),), (symbol,))
    np.testing.assert_array_equal(run(verify(counts), [3])[0], [0, 1, 2])


def test_constants_of_files_are_inputs() -> None:
    x, y = value(0, DType.bf16, 2), value(1, DType.f32, 2)
    widen = Node("aten._to_copy.default", (x, Token("dtype", "f32"), None, None, None, False, None), (y,))
    data = TensorData(DType.bf16, (2,), memoryview(bytearray(b"\x80\x3f\x00\xc0")))
    np.testing.assert_array_equal(run(graph([x], [widen], [y]), [data])[0], [1, -2])


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ([], "0 inputs, not 1"),
        ([np.zeros((2, 3))], "input 0 is float64[2, 3], not f32[b, 3]"),
        ([np.zeros((2, 4), np.float32)], "input 0 has the shape [2, 4], not f32[b, 3]"),
        ([np.zeros((9, 3), np.float32)], "the size b is 9, not in [1, 8]"),
        ([[[1.0, 2.0, 3.0]]], "input 0 is a list, not an array"),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs: list[Any], says: str) -> None:
    x = value(0, DType.f32, "b", 3)
    same = graph([x], [], [x], (Symbol("b", 1, 8, (0, 0)),))
    with pytest.raises(ArgumentError) as caught:
        run(same, inputs)
    assert str(caught.value) == f"FL203: {says}\n  from: graph @g\n  next: give it f32[b, 3]"


def test_an_unknown_op_is_named_with_its_line() -> None:
    x, y = Value(0, ROW), Value(1, ROW)
    node = Node("acme.twist.default", (x,), (y,), Location("model.py", 12, "forward"))
    with pytest.raises(InterpretError) as caught:
        run(graph([x], [node], [y]), [np.zeros(4, np.float32)])
    assert str(caught.value) == (
        "FL505: the NumPy interpreter has no meaning for acme.twist.default\n"
        "  from: model.py:12 in forward: %1 = acme.twist.default(%0) : f32[4]\n"
        "  next: decompose it (fairlead.passes.decompose), or run the graph with torch (fairlead.interpret.run)"
    )
    assert not supports("acme.twist.default")
    assert supports("aten.relu.default")


def test_a_value_is_let_go_after_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlead.numpy import _table

    class Watched(np.ndarray[Any, Any]):
        pass

    alive: list[int] = []
    made: list[weakref.ref[Any]] = []

    def step(call: Any, x: Any) -> Any:
        gc.collect()
        alive.append(sum(ref() is not None for ref in made))
        new = (np.asarray(x) + 1).view(Watched)
        made.append(weakref.ref(new))
        return new

    monkeypatch.setitem(_table.rules(), "test.step.default", step)
    values = [Value(n, ROW) for n in range(6)]
    nodes = [Node("test.step.default", (a,), (b,)) for a, b in itertools.pairwise(values)]
    found = run(graph(values[:1], nodes, values[-1:]), [np.zeros(4, np.float32)])
    np.testing.assert_array_equal(found[0], np.full(4, 5))
    assert max(alive) <= 1


def test_inputs_are_not_written_to() -> None:
    x = np.zeros(3, np.float32)
    x.setflags(write=False)
    source = np.ones(1, np.float32)
    found = call("aten.slice_scatter.default", x, source, 0, 1, 2, 1, gives=x)
    np.testing.assert_array_equal(found, [0, 1, 0])


def test_random_numbers_depend_on_the_generator_alone() -> None:
    def draw(rng: Any = None) -> Any:
        args = ([1000], 0.25, Token("dtype", "bool"), Token("device", "cpu"))
        return call("nn.bernoulli.default", *args, gives=np.zeros(1000, bool), rng=rng)

    np.testing.assert_array_equal(draw(), draw())
    np.testing.assert_array_equal(draw(), draw(np.random.Generator(np.random.PCG64(0))))
    other = draw(np.random.default_rng(1))
    assert (other != draw()).any()
    assert 200 < other.sum() < 300


def region(inputs: list[Value], nodes: list[Node], outputs: list[Any]) -> Graph:
    return Graph("region", Kind.region, tuple(map(Input, inputs)), tuple(nodes), tuple(map(Output, outputs)))


def binary(op: str, a: Any, b: Any, out: Value) -> Node:
    return Node(op, (a, b, 1) if op == "aten.add.Tensor" else (a, b), (out,))


def test_cond_runs_one_of_its_regions() -> None:
    p, x, y = value(0, DType.bool), Value(1, ROW), Value(2, ROW)
    a, b = Value(0, ROW), Value(1, ROW)
    negate = region([a], [Node("aten.neg.default", (a,), (b,))], [b])
    node = Node("hop.cond", (p, (x,)), (y,), regions=(negate, region([a], [], [a])))
    both = graph([p, x], [node], [y])
    row = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(both, [np.array(True), row])[0], -row)
    np.testing.assert_array_equal(run(both, [np.array(False), row])[0], row)


def test_while_loop_carries_on_until_its_condition_fails() -> None:
    start, step, out = (value(n, DType.i64) for n in range(3))
    a, b, c, d = value(0, DType.i64), value(1, DType.i64), value(2, DType.bool), value(2, DType.i64)
    condition = region([a, b], [binary("aten.lt.Tensor", a, 10, c)], [c])
    body = region([a, b], [binary("aten.add.Tensor", a, b, d)], [d])
    node = Node("hop.while_loop", ((start,), (step,)), (out,), regions=(condition, body))
    assert run(graph([start, step], [node], [out]), [np.array(1), np.array(4)]) == (13,)


def test_scan_carries_on_and_stacks() -> None:
    total, xs, last, sums = value(0, DType.i64), value(1, DType.i64, 3), value(2, DType.i64), value(3, DType.i64, 3)
    a, b, c = value(0, DType.i64), value(1, DType.i64), value(2, DType.i64)
    body = region([a, b], [binary("aten.add.Tensor", a, b, c)], [c, c])
    node = Node("hop.scan", ((total,), (xs,), ()), (last, sums), regions=(body,))
    found = run(graph([total, xs], [node], [last, sums]), [np.array(10), np.array([1, 2, 3])])
    assert int(found[0]) == 16
    np.testing.assert_array_equal(found[1], [11, 13, 16])


def test_map_runs_on_each_row() -> None:
    xs, y, out = value(0, DType.i64, 2, 3), value(1, DType.i64), value(2, DType.i64, 2, 3)
    a, b, c = value(0, DType.i64, 3), value(1, DType.i64), value(2, DType.i64, 3)
    body = region([a, b], [binary("aten.mul.Tensor", a, b, c)], [c])
    node = Node("hop.map", ((xs,), (y,)), (out,), regions=(body,))
    rows = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(run(graph([xs, y], [node], [out]), [rows, np.array(2)])[0], 2 * rows)


def test_an_error_inside_a_region_names_the_node_in_it() -> None:
    x, y = value(0, DType.i64), value(1, DType.i64)
    a, b = value(0, DType.i64), value(1, DType.i64)
    body = region([a], [Node("aten.div.Tensor_mode", (a, 0, "floor"), (b,))], [b])
    node = Node("hop.cond", (True, (x,)), (y,), regions=(body, msgspec.structs.replace(body)))
    with pytest.raises(InterpretError, match="integer is divided by zero"):
        run(graph([x], [node], [y]), [np.array(1)])


def test_a_saved_random_state_draws_the_same_again() -> None:
    state, first, again = value(0, DType.u8, 5056), value(1, DType.f32, 3), value(2, DType.f32, 3)
    inner = value(0, DType.f32, 3)
    body = region([], [Node("aten.rand.default", ((3,), Token("dtype", "f32"), None, None, None), (inner,))], [inner])
    cpu = Token("device", "cpu")
    save = Node("hop.run_and_save_rng_state", (cpu, ()), (state, first), regions=(body,))
    replay = Node("hop.run_with_rng_state", (cpu, state, ()), (again,), regions=(body,))
    found = run(graph([], [save, replay], [first, again]), [])
    np.testing.assert_array_equal(found[0], found[1])


TIERS = ("base", "ext", "nn", "hop")


def test_every_op_of_the_opset_that_should_has_a_meaning() -> None:
    specs = opset.specs()
    assert [op for op, spec in specs.items() if spec.tier in TIERS and not supports(op)] == []
    assert [op for op, spec in specs.items() if ("numpy" in spec.interpreters) != supports(op)] == []
