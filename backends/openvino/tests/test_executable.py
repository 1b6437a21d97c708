"""What OpenVINO's executable promises beyond tests/test_executables.py: whole integers, quotients rounded once."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest
import torch

import fairlead
from fairlead import processor
from fairlead.backend import Executable
from fairlead.interpret import run
from fairlead.ir import (
    Builder,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    Symbol,
    TensorType,
    Token,
    Value,
    parse_graph,
)
from fairlead_openvino import _compiled, _executable, backend
from fairlead_openvino._target import TARGET


def tensor(id_: int, *shape: int | str, dtype: DType = DType.f32) -> Value:
    return Value(id_, TensorType(dtype, shape))


def graph(inputs: list[Value], nodes: list[Node], *outputs: Value, symbols: tuple[Symbol, ...] = ()) -> Graph:
    return Graph(
        "g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(Output(o) for o in outputs), symbols
    )


def linear(weight: torch.Tensor | None = None) -> Executable:
    """x @ weight.T on 4 x 8 inputs; the weight is baked in where it is given."""
    x, w, out = tensor(0, 4, 8), tensor(1, 3, 8), tensor(2, 4, 3)
    g = graph([x, w], [Node("aten.linear.default", (x, w, None), (out,))], out)
    return backend.compile(g, backend.options_type(), {} if weight is None else {1: weight})


def test_an_lstm_turns_its_input_for_nobody_else() -> None:
    """OpenVINO takes the turn away from the other layer, and from the sum."""
    b = Builder("g")
    kinds = ["f32[5, 3, 8]", "f32[1, 3, 16]", "f32[64, 8]", "f32[64, 16]", "f32[64]", "f32[64]"]
    x, state, *weights = map(b.input, kinds)
    for reverse in (False, True):
        for out in b.ops("nn.lstm", x, state, state, *weights, reverse):
            b.output(out)
    b.output(b.op("aten.add.Tensor", b.op("aten.permute.default", x, [1, 0, 2]), 1.0))
    given = [torch.randn(size) for size in ((5, 3, 8), (1, 3, 16), (64, 8), (64, 16), (64,), (64,))]
    found = backend.compile(b.graph(), backend.options_type(), dict(enumerate(given[2:], 2)))(given[:2])
    torch.testing.assert_close(tuple(found), run(b.graph(), given))


@pytest.mark.parametrize("columns", [256, "n"])
def test_an_input_is_read_where_it_lies_at_this_call(columns: int | str) -> None:
    """It is larger than what is copied. What lies where another lay may be of other numbers, or of another size."""
    b = Builder("g")
    b.output(b.op("aten.relu.default", b.input(f"f32[64, {columns}]")))
    executable = backend.compile(b.graph(), backend.options_type(), {})
    memory = torch.randn(64 * 256)
    here, elsewhere = memory.view(64, 256), torch.randn(64, 256)
    for x in (here, elsewhere, here, elsewhere.t().reshape(64, 256), here.neg_(), elsewhere):
        torch.testing.assert_close(executable([x])[0], x.relu())
    if columns == "n":
        for x in (memory[: 64 * 100].view(64, 100), here):
            torch.testing.assert_close(executable([x])[0], x.relu())


def test_importing_the_backend_loads_neither_the_sdk_nor_torch() -> None:
    code = "import fairlead_openvino, sys; print({'torch', 'openvino', 'onnx_ir', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_the_probe_names_the_versions_and_a_device() -> None:
    probe = backend.probe()
    assert probe.ok
    assert probe.devices
    assert set(probe.versions) == {"openvino", "onnx-ir"}


def test_the_magnitude_of_a_zero_has_no_sign() -> None:
    x, out = tensor(0, 3), tensor(1, 3)
    run = backend.compile(graph([x], [Node("aten.abs.default", (x,), (out,))], out), backend.options_type(), {})
    (found,) = run([torch.tensor([0.0, -0.0, -2.0])])
    assert found.tolist() == [0.0, 0.0, 2.0]
    assert not found.signbit().any()


def wide(op: str, *rest: object, dtype: DType = DType.i64) -> Executable:
    x, out = tensor(0, 2, dtype=DType.i64), tensor(1, 2, dtype=dtype)
    return backend.compile(graph([x], [Node(op, (x, *rest), (out,))], out), backend.options_type(), {})


def test_an_integer_that_the_plugin_would_cut_keeps_all_of_its_digits() -> None:
    run = wide("aten.neg.default")
    assert run([torch.tensor([1, -2])])[0].tolist() == [-1, 2]
    assert run([torch.tensor([1, 2**53 + 1])])[0].tolist() == [-1, -(2**53) - 1]


def test_a_sum_that_the_plugin_would_cut_keeps_all_of_its_digits() -> None:
    x, out = tensor(0, 2, dtype=DType.i64), tensor(1, 2, dtype=DType.i64)
    g = graph([x], [Node("aten.add.Tensor", (x, x, 3), (out,))], out)
    assert backend.compile(g, backend.options_type(), {})([torch.tensor([2**30, 1])])[0].tolist() == [2**32, 4]
    assert wide("aten.add.Tensor", 2**40, 1)([torch.tensor([0, 1])])[0].tolist() == [2**40, 2**40 + 1]


READ = "%8 = aten.embedding.default(%3, %7, -1, false, false) : f32[3, 2]\n  out %8 user"
BUCKETS = """graph @g inference {{
  in %0 intermediate "large" : i64[3]
  in %1 intermediate "small" : i64[3]
  in %2 intermediate "is_small" : bool[3]
  in %3 parameter "table" : f32[8, 2]
  %4 = {shifted} : i64[3]
  %5 = aten.full.default([3], 3, #dtype<i64>, #layout<strided>, #device<cpu>, false) : i64[3]
  %6 = aten.minimum.default(%4, %5) : i64[3]
  %7 = aten.where.self(%2, %1, %6) : i64[3]
  {last}
}}"""
ONE_ON = "aten.add.Tensor(%0, 1, 1)"


@pytest.mark.parametrize(
    ("shifted", "last", "small", "cuts"),
    [
        pytest.param(ONE_ON, READ, [1, 7, 7], True, id="an index that is not chosen, or beyond another that is"),
        pytest.param(
            "aten.add.Tensor(%0, 1073741824, 1)", READ, [1, 7, 7], False, id="what is added may bring it back"
        ),
        pytest.param(ONE_ON, READ, [1, 2**30, 7], False, id="another input may bring it back"),
        pytest.param("aten.add.Tensor(%0, %1, 1)", READ, [1, 2**40, 0], False, id="another that is cut brings it back"),
        pytest.param("aten.add.Tensor(%0, -1, 1)", READ, [1, 7, 7], False, id="its sign may change before a choice"),
        pytest.param("aten.neg.default(%0)", READ, [1, 7, 7], False, id="its sign may stay before a choice"),
        pytest.param(ONE_ON, "out %7 user", [1, 7, 7], False, id="it is seen"),
        pytest.param(
            ONE_ON, "%8 = aten.lt.Tensor(%7, 0) : bool[3]\n  out %8 user", [1, 7, 7], False, id="it is compared"
        ),
    ],
)
def test_an_index_far_out_of_range_is_cut_where_nobody_can_tell(
    shifted: str, last: str, small: list[int], cuts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = parse_graph(BUCKETS.format(shifted=shifted, last=last))
    hides_all = max(small) < 8 and not cuts  # the decision is what counts there, and no index is to be an error
    is_small = torch.tensor([True, hides_all, hides_all])
    inputs = [torch.tensor([-(2**63), 2**40, 0]), torch.tensor(small), is_small]
    table = torch.arange(16.0).view(8, 2)
    compiled = backend.compile(g, backend.options_type(), {})
    slow = []
    evaluate = _executable._Runs._evaluate

    def evaluated(runs: Any, given: Any) -> list[torch.Tensor]:
        slow.append(runs)
        return evaluate(runs, given)

    monkeypatch.setattr(_executable._Runs, "_evaluate", evaluated)
    torch.testing.assert_close(compiled([*inputs, table]), list(run(g, [*inputs, table])))
    assert (not slow) is cuts


def test_an_integer_is_refused_where_no_other_implementation_has_the_op() -> None:
    x, y = tensor(0, 1, 1, 2, 2), tensor(1, 1, 1, 3, 3)
    n, m = tensor(2, 2, dtype=DType.i64), tensor(3, 2, dtype=DType.i64)
    nodes = [
        Node("aten.convolution.default", (x, x, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1), (y,)),
        Node("aten.neg.default", (n,), (m,)),
    ]
    run = backend.compile(graph([x, n], nodes, y, m), backend.options_type(), {})
    with pytest.raises(OverflowError, match="64-bit integers in 32 bits"):
        run([torch.randn(1, 1, 2, 2), torch.tensor([1, 2**40])])


def bags(reduction: str, *, each: int = 3, of: str = "aten.embedding.default(%0, %1, -1, false, false)") -> Graph:
    """The rows of a table that any number of bags have, ``each`` as many, added up."""
    return parse_graph(
        "symbol n in [0, inf] from in1.dim0\n"
        f'graph @g inference {{\n  in %0 parameter "table" : f32[8, 2]\n  in %1 user "places" : i64[n, {each}]\n'
        f'  in %2 user "count" : i64[2]\n  %3 = {of} : f32[n, {each}, 2]\n  %4 = {reduction} : f32[n, 2]\n'
        "  %5 = aten.neg.default(%2) : i64[2]\n  out %4 user\n  out %5 user\n}"
    )


TOTAL, MEAN = "aten.sum.dim_IntList(%3, [1], false, none)", "aten.mean.dim(%3, [1], false, none)"
TABLE, COUNT = torch.arange(16.0).view(8, 2) / 3, torch.tensor([1, -2])


@pytest.mark.parametrize("reduction", [TOTAL, MEAN])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_are_looked_up_and_added_are_so_in_one_step(reduction: str, threads: int) -> None:
    g = bags(reduction)
    compiled = backend.compile(g, backend.options_type(threads=threads), {0: TABLE})
    assert "EmbeddingBagPacked " in compiled.readable()["steps.txt"]
    for places in (torch.tensor([[1, 7, 7], [0, 2, 1]]), torch.randint(0, 8, (50, 3)), torch.zeros(0, 3).long()):
        torch.testing.assert_close(compiled([places, COUNT]), list(run(g, [TABLE, places, COUNT])))
    for wrong in (-1, 8):
        with pytest.raises(IndexError, match="an index is out of range"):
            compiled([torch.tensor([[1, wrong, 2]]), COUNT])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", [-9, -8, -1, 7, 8, 2**40])
@pytest.mark.parametrize(
    ("node", "first"),
    [
        ("aten.scatter.value(%0, 0, %1, 1.0)", 0),
        ("aten.index_put.default(%0, [%2], %3, false)", -8),
        ("aten.index_put.default(%0, [%2], %3, true)", -8),
    ],
)
def test_nothing_is_written_out_of_range(node: str, first: int, place: int, threads: int) -> None:
    """With one thread, where a kernel has failed, OpenVINO goes on."""
    g = parse_graph(
        'graph @g inference {\n  in %0 user "x" : f32[8, 2]\n  in %1 user "places" : i64[3, 2]\n'
        '  in %2 user "rows" : i64[3]\n  in %3 user "values" : f32[3, 2]\n'
        f"  %4 = {node} : f32[8, 2]\n  out %4 user\n}}"
    )
    compiled = backend.compile(g, backend.options_type(threads=threads), {})
    for rows in (torch.tensor([0, 7, 3]), torch.tensor([0, place, 3])):
        inputs = [TABLE, rows[:, None].expand(3, 2), rows, torch.ones(3, 2)]
        if first <= int(rows[1]) < 8:
            torch.testing.assert_close(compiled(inputs), list(run(g, inputs)))
        else:
            with pytest.raises(IndexError, match="an index is out of range"):
                compiled(inputs)


def test_bags_are_computed_beside_integers_that_the_plugin_would_cut() -> None:
    g = bags(TOTAL)
    places, count = torch.tensor([[1, 7, 7]]), torch.tensor([2**40, 1])
    compiled = backend.compile(g, backend.options_type(), {0: TABLE})
    torch.testing.assert_close(compiled([places, count]), list(run(g, [TABLE, places, count])))


@pytest.mark.parametrize(
    "g",
    [
        pytest.param(bags(TOTAL, each=0), id="bags of nothing"),
        pytest.param(bags(TOTAL, of="aten.index.Tensor(%0, [%1])"), id="places that count from the end"),
    ],
)
def test_rows_that_the_step_for_bags_does_not_take_are_added_otherwise(g: Graph) -> None:
    compiled = backend.compile(g, backend.options_type(), {0: TABLE})
    assert "EmbeddingBag" not in compiled.readable()["steps.txt"]
    places = torch.tensor([[1, -1, 7]] if g.inputs[1].value.tensor.shape[1] else [[], []]).long()
    torch.testing.assert_close(compiled([places, COUNT]), list(run(g, [TABLE, places, COUNT])))


def product(rows: int | str, terms: int, columns: int, last: str = "aten.mul.Tensor(%4, %4)") -> Graph:
    """A product and a bias, and beside it an integer."""
    symbol = "symbol n in [0, inf] from in0.dim1\n" if isinstance(rows, str) else ""
    return parse_graph(
        f'{symbol}graph @g inference {{\n  in %0 user "x" : f32[1, {rows}, {terms}]\n'
        f'  in %1 parameter "w" : f32[{columns}, {terms}]\n  in %2 parameter "b" : f32[{columns}]\n'
        f'  in %3 user "count" : i64[2]\n  %4 = aten.linear.default(%0, %1, %2) : f32[1, {rows}, {columns}]\n'
        f"  %5 = {last} : f32[1, {rows}, {columns}]\n  %6 = aten.neg.default(%3) : i64[2]\n"
        "  out %5 user\n  out %6 user\n}"
    )


has_avx512 = pytest.mark.skipif(not processor.has_avx512(), reason="the processor has no AVX-512")


@has_avx512
@pytest.mark.parametrize(
    ("rows", "terms", "columns", "mlas"),
    [(32, 1024, 96, False), (31, 1024, 96, True), (32, 1040, 96, True), (32, 1024, 95, True), ("n", 1024, 96, True)],
)
def test_products_whose_rows_contend_are_onednns(rows: int | str, terms: int, columns: int, mlas: bool) -> None:
    g = product(rows, terms, columns)
    x, w, b = torch.randn(1, 33 if rows == "n" else int(rows), terms), torch.randn(columns, terms), torch.randn(columns)
    x[0, 0], x[0, 1], b[0] = -0.0, 0.0, -0.0
    x[0, 2, 0], x[0, 3, 0], w[:3] = torch.nan, torch.inf, w[:3].abs()
    compiled = backend.compile(g, backend.options_type(), {1: w, 2: b})
    for count in (COUNT, torch.tensor([2**40, 1])):  # the second by the reference implementations
        torch.testing.assert_close(
            compiled([x, count]), list(run(g, [x, w, b, count])), equal_nan=True, rtol=1e-4, atol=1e-4
        )
    assert ("gemm_mlas" in compiled.readable()["steps.txt"]) is mlas


@has_avx512
@pytest.mark.parametrize(
    ("channels", "results", "length", "spread"),
    [
        pytest.param(512, 342, 57, True, id="contends"),
        pytest.param(511, 342, 57, False, id="other channels"),
        pytest.param(512, 341, 57, False, id="few results"),
        pytest.param(512, 342, 56, False, id="few positions"),
        pytest.param(512, 342, "n", False, id="a length of the call"),
    ],
)
def test_positions_of_a_convolution_do_not_contend(
    channels: int, results: int, length: int | str, spread: bool
) -> None:
    symbol = "symbol n in [3, inf] from in0.dim2\n" if isinstance(length, str) else ""
    g = parse_graph(
        f'{symbol}graph @g inference {{\n  in %0 user "x" : f32[2, {channels}, {length}]\n'
        f'  in %1 parameter "w" : f32[{results}, {channels}, 3]\n'
        "  %2 = aten.convolution.default(%0, %1, none, [2], [0], [1], false, [0], 1) : "
        f"f32[2, {results}, {'((n - 1)//2)' if symbol else (int(length) - 1) // 2}]\n  out %2 user\n}}"
    )
    x, w = torch.randn(2, channels, 57 if symbol else int(length)), torch.randn(results, channels, 3)
    x[0, 0, 0], x[1, 1, 1] = torch.nan, torch.inf
    compiled = backend.compile(g, backend.options_type(), {1: w})
    torch.testing.assert_close(compiled([x]), list(run(g, [x, w])), equal_nan=True, rtol=1e-4, atol=1e-4)
    assert ("Concat" in compiled.readable()["steps.txt"]) is spread


def test_a_constant_that_the_plugin_would_cut_is_refused() -> None:
    x, w, out = (tensor(i, 2, dtype=DType.i64) for i in range(3))
    g = graph([x, w], [Node("aten.add.Tensor", (x, w, 1), (out,))], out)
    with pytest.raises(OverflowError, match="a constant has one beyond"):
        backend.compile(g, backend.options_type(), {1: torch.tensor([0, 2**40])})


def test_a_number_of_the_graph_s_own_that_the_plugin_would_cut_is_kept() -> None:
    full = f"%0 = aten.full.default([2], {2**40}, #dtype<i64>, #layout<strided>, #device<cpu>, false) : i64[2]"
    g = parse_graph(f"graph @g inference {{\n  {full}\n  out %0 user\n}}")
    assert backend.compile(g, backend.options_type(), {})([])[0].tolist() == [2**40, 2**40]


def test_far_integers_beside_floats_and_narrow_ones_take_all_of_a_graph_another_way() -> None:
    def program(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + 1, y // 3, torch.fmod(y, 3), z.isnan(), z.isinf()

    inputs = (
        torch.tensor([2**40, -7]),
        torch.tensor([-128, 127, -7], dtype=torch.int8),
        torch.tensor([torch.nan, -torch.inf]),
    )
    found = fairlead.compile(program, backend="openvino", max_fallback=0)(*inputs)
    for one, expected in zip(found, program(*inputs), strict=True):
        assert torch.equal(one, expected)


def test_a_float_of_the_call_beyond_f32_is_infinite() -> None:
    scaled = fairlead.compile(lambda x, s: x * s, backend="openvino", max_fallback=0)
    x = torch.tensor([1.5, -2.0, 0.25])
    for s in (0.5, 0.25, 1e39, -float("inf")):
        assert torch.equal(scaled(x, s), x * s)


def test_integers_of_f64_are_declined() -> None:
    g = parse_graph(
        'graph @g inference {\n  in %0 user "x" : f64[3]\n'
        "  %1 = aten._to_copy.default(%0, #dtype<i32>, none, none, none, false, none) : i32[3]\n  out %1 user\n}"
    )
    (node,) = g.nodes
    assert backend.supports(node).reason == "OpenVINO does not compute in f64"


def test_division_by_a_number_beyond_what_f32_refines_is_declined() -> None:
    x, out = tensor(0, 3, dtype=DType.i32), tensor(1, 3, dtype=DType.i32)
    reason = "OpenVINO divides integers in floating point, which does not hold 8388609"
    assert backend.supports(Node("aten.fmod.Tensor", (x, 2**23 + 1), (out,))).reason == reason
    assert backend.supports(Node("aten.fmod.Tensor", (x, 2**23), (out,))).accepted


def test_f32_is_not_computed_in_less() -> None:
    weight = torch.randn(3, 8)
    x = torch.randn(4, 8)
    torch.testing.assert_close(linear(weight)([x])[0], x @ weight.t(), rtol=1e-5, atol=1e-5)


def test_large_integers_are_picked_by_two_indices_of_either_sign() -> None:
    x, i, j, out = (Value(k, TensorType(DType.i64, shape)) for k, shape in enumerate([(3, 4, 2), (5,), (5,), (5, 2)]))
    node = Node("aten.index.Tensor", (x, (i, j)), (out,))
    run = backend.compile(graph([x, i, j], [node], out), backend.options_type(), {})
    given = torch.arange(24).view(3, 4, 2) + (1 << 40)
    places = torch.tensor([0, 2, -1, 1, -3]), torch.tensor([3, -4, 0, -1, 2])
    assert torch.equal(run([given, *places])[0], given[places])


def test_quotients_are_rounded_once() -> None:
    x, y, out = tensor(0, 1000), tensor(1, 1000), tensor(2, 1000)
    run = backend.compile(graph([x, y], [Node("aten.div.Tensor", (x, y), (out,))], out), backend.options_type(), {})
    a, b = torch.randn(2, 1000)
    assert torch.equal(run([a, b])[0], a / b)


def test_quotients_of_a_number_are_rounded_once() -> None:
    x, out = tensor(0, 1000), tensor(1, 1000)
    for of in ((x, 5.1), (5.1, x)):
        run = backend.compile(graph([x], [Node("aten.div.Tensor", of, (out,))], out), backend.options_type(), {})
        a = torch.rand(1000) + 1
        left, right = (a.double() if isinstance(v, Value) else torch.tensor(v).double() for v in of)
        assert torch.equal(run([a])[0], (left / right).float())


def test_a_quotient_is_right_where_the_plugin_fuses_it() -> None:
    x, total, out = tensor(0, 3, 4), tensor(1, 3, 1), tensor(2, 3, 1)
    for of in ((total, 7.0), (7.0, total)):
        nodes = [
            Node("aten.sum.dim_IntList", (x, (1,), True, None), (total,)),
            Node("aten.div.Tensor", of, (out,)),
        ]
        given = torch.rand(3, 4) + 1
        (found,) = backend.compile(graph([x], nodes, out), backend.options_type(), {})([given])
        left, right = (given.sum(1, keepdim=True) if isinstance(v, Value) else v for v in of)
        torch.testing.assert_close(found, left / right)


def test_the_magnitude_of_what_is_constant_is_taken() -> None:
    x, index, shifted, size, out = (tensor(i, 3, dtype=DType.i64) for i in range(5))
    nodes = [
        Node("aten.arange.start_step", (0, 3, 1, None, None, None, None), (index,)),
        Node("aten.sub.Tensor", (index, 2, 1), (shifted,)),
        Node("aten.abs.default", (shifted,), (size,)),
        Node("aten.add.Tensor", (size, x, 1), (out,)),
    ]
    run = backend.compile(graph([x], nodes, out), backend.options_type(), {})
    assert run([torch.zeros(3, dtype=torch.int64)])[0].tolist() == [2, 1, 0]


@pytest.mark.parametrize("cuts", [frozenset({DType.bf16}), None])
def test_a_number_becomes_the_nearest_of_bfloat16(
    cuts: frozenset[DType] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is written for processors that drop its digits, and by what this one is given."""
    if cuts is not None:
        monkeypatch.setattr(_compiled, "target_here", lambda: msgspec.structs.replace(TARGET, cuts=cuts))
    x, out = tensor(0, "n"), tensor(1, "n", dtype=DType.bf16)
    node = Node("aten._to_copy.default", (x, Token("dtype", DType.bf16), *[None] * 3, False, None), (out,))
    run = backend.compile(graph([x], [node], out, symbols=(Symbol("n", 1, None, (0, 0)),)), backend.options_type(), {})
    generator = torch.Generator().manual_seed(0)
    places = torch.randint(-(2**15), 2**15, (50_000,), generator=generator, dtype=torch.int32) << 16
    given = torch.stack([places + low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).flatten().view(torch.float32)
    given = given[(given.abs() >= torch.finfo(torch.float32).tiny) | given.isnan() | (given == 0)]
    (found,) = run([given])
    expected = given.bfloat16()
    assert torch.equal(found.isnan(), expected.isnan())
    same = found.view(torch.int16) == expected.view(torch.int16)
    assert given[~(same | expected.isnan())].tolist() == []


def test_residual_products_do_not_end_the_process_on_one_thread() -> None:
    """OpenVINO's tokenizer dies of two in a row (defects/crash.py): not in this process, if it should again."""
    code = """if True:
        import torch, fairlead
        torch.manual_seed(0)
        layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)) for _ in range(2)
        ).eval().requires_grad_(False)

        def residual(x):
            for layer in layers:
                x = x + layer(x)
            return x

        x = torch.randn(2, 8)
        compiled = fairlead.compile(residual, backend="openvino", options={"threads": 1}, max_fallback=0)
        torch.testing.assert_close(compiled(x), residual(x))
        print("agrees")
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "agrees", result.stderr


def test_a_choice_and_a_loop_are_the_models() -> None:
    x, y, truth, out = tensor(0, 3), tensor(1, 3), Value(2, TensorType(DType.bool, ())), tensor(3, 3)

    def region(op: str, *args: object, dtype: DType = DType.f32) -> Graph:
        result = Value(1, TensorType(dtype, (3,) if dtype is DType.f32 else ()))
        return Graph(
            "r",
            Kind.region,
            (Input(tensor(0, 3)),),
            (Node(op, (tensor(0, 3), *args), (result,)),),
            (Output(result),),
            (),
        )

    twice, less = region("aten.mul.Tensor", 2), region("aten.sub.Tensor", 1, 1)
    small = region("aten.any.default", dtype=DType.bool)
    nodes = [
        Node("hop.cond", (truth, (x,)), (y,), regions=(twice, less)),
        Node("hop.while_loop", ((y,), ()), (out,), regions=(small, region("aten.clamp.default", 0, 0))),
    ]
    run = backend.compile(graph([x, truth], nodes, y, out), backend.options_type(), {})
    assert all(backend.supports(node).accepted for node in nodes)
    for holds, expected in ((True, [2.0, 4.0, 0.0]), (False, [0.0, 1.0, -1.0])):
        first, last = run([torch.tensor([1.0, 2.0, 0.0]), torch.tensor(holds)])
        assert first.tolist() == expected
        assert last.tolist() == [0.0, 0.0, 0.0]


def test_a_loop_that_carries_a_64_bit_integer_is_declined() -> None:
    n, m = (Value(i, TensorType(DType.i64, ())) for i in range(2))
    support = backend.supports(Node("hop.while_loop", ((n,), ()), (m,), regions=(*[wide_region()] * 2,)))
    assert support.reason == "OpenVINO computes 64-bit integers in 32 bits, also those that a loop carries"


def wide_region() -> Graph:
    n = Value(0, TensorType(DType.i64, ()))
    return Graph("r", Kind.region, (Input(n),), (), (Output(n),), ())


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("order", [torch.triu_indices, torch.tril_indices])
def test_the_pairs_of_27_features_are_those_that_were_asked_for(order: Any, moved: bool) -> None:
    """The plugin has an op for the features of a recommender, which goes by no indices."""
    first, second = order(27, 27, 1 if order is torch.triu_indices else -1)
    flat = first * 27 + second

    def pairs(*features: torch.Tensor) -> torch.Tensor:
        each = torch.stack(features, 1)
        products = each @ each.transpose(1, 2)
        if moved:
            picked = products.permute(1, 2, 0).reshape(27 * 27, -1).index_select(0, flat).t()
        else:
            picked = products[:, first, second]
        return torch.cat([features[0], picked], 1)

    torch._dynamo.reset()
    features = [torch.randn(16, 8) for _ in range(27)]
    found = fairlead.compile(pairs, backend="openvino", fallback=())(*features)
    torch.testing.assert_close(found, pairs(*features), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "declines"), [("forward", True), ("inference", False)])
def test_training_that_is_mostly_convolutions_is_left_to_others(kind: str, declines: bool) -> None:
    graph = parse_graph(
        f"""graph @g {kind} {{
  in %0 user "x" : f32[1, 3, 8, 8]
  in %1 parameter "w" : f32[4, 3, 3, 3]
  %2 = aten.convolution.default(%0, %1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) : f32[1, 4, 6, 6]
  out %2 user
}}"""
    )
    assert (backend.declines_graph(graph) is not None) is declines
