"""The lowering as a pure function: what it accepts, what it declines and why, and the model that it writes."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from fairlead.ir import DimExpr, DType, Graph, Input, Kind, Node, Output, ScalarType, Symbol, TensorType, Token, Value
from fairlead_onnx import DOMAIN, Target, lower, supports

PLAIN = Target(name="demo")
CONTRIB = Target(name="demo", contrib=True)
LENGTH = (Symbol("n", 0, None, (0, 0)),)


def tensor(id_: int, *shape: int | str, dtype: DType = DType.f32) -> Value:
    return Value(id_, TensorType(dtype, shape))


def graph(inputs: list[Value], nodes: list[Node], *outputs: Value, symbols: tuple[Symbol, ...] = ()) -> Graph:
    return Graph(
        "g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(Output(o) for o in outputs), symbols
    )


def ops(g: Graph, target: Target = PLAIN) -> list[str]:
    return [node.op_type for node in lower(g, target=target).model.graph]


def test_importing_it_loads_neither_torch_nor_onnx_ir_nor_numpy() -> None:
    code = "import fairlead_onnx, sys; print({'torch', 'onnx_ir', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("target", [PLAIN, CONTRIB], ids=["plain", "contrib"])
@pytest.mark.parametrize(
    ("node", "constants", "longer"),
    [
        (Node("aten.mm.default", (tensor(0, 32, 1024), tensor(1, 1024, 768)), (tensor(2, 32, 768),)), [1], True),
        (Node("aten.mm.default", (tensor(0, "n", 1024), tensor(1, 1024, 768)), (tensor(2, "n", 768),)), [1], True),
        (Node("aten.mm.default", (tensor(0, 32, 1024), tensor(1, 1024, 768)), (tensor(2, 32, 768),)), [], False),
        (Node("aten.mm.default", (tensor(0, 31, 1024), tensor(1, 1024, 768)), (tensor(2, 31, 768),)), [1], False),
        (Node("aten.mm.default", (tensor(0, 32, 1025), tensor(1, 1025, 768)), (tensor(2, 32, 768),)), [1], False),
        (Node("aten.mm.default", (tensor(0, 32, 1024), tensor(1, 1024, 767)), (tensor(2, 32, 767),)), [1], False),
    ],
    ids=["rows that contend", "rows of the call", "a weight of the call", "few rows", "other rows", "few columns"],
)
def test_rows_of_a_product_that_contend_for_the_cache_are_made_longer(
    node: Node, constants: list[int], longer: bool, target: Target
) -> None:
    g = graph(list(node.operands()), [node], *(r for r in node.results if r is not None), symbols=LENGTH)
    lowered = lower(g, target=msgspec.structs.replace(target, contends=4096), constants=constants)
    assert ("Concat" in [n.op_type for n in lowered.model.graph]) is longer
    assert "Concat" not in ops(g, target)


def test_rows_are_left_as_they_are_where_the_weight_is_dequantised() -> None:
    x, steps, scales = tensor(0, 32, 1024), tensor(1, 1024, 768, dtype=DType.i8), tensor(2, 768)
    weight, out = tensor(3, 1024, 768), tensor(4, 32, 768)
    arguments = steps, scales, None, 1, -128, 127, DType.i8, None
    read = Node("quantized_decomposed.dequantize_per_channel.default", arguments, (weight,))
    g = graph([x, steps, scales], [read, Node("aten.mm.default", (x, weight), (out,))], out)
    lowered = lower(g, target=Target(name="demo", contends=4096), constants=[1, 2])
    assert "Concat" not in [n.op_type for n in lowered.model.graph]
    assert "DequantizeLinear" in [n.op_type for n in lowered.model.graph]


def test_an_unknown_op_is_declined_by_its_name() -> None:
    support = supports(Node("acme.swirl.default", (tensor(0, 2),), (tensor(1, 2),)), target=PLAIN)
    assert not support.accepted
    assert support.reason == "acme.swirl.default has no ONNX lowering"


def test_what_a_target_declines_is_declined_with_its_reason() -> None:
    target = Target(name="demo", declined={"aten.relu.default": "slow here"})
    assert supports(Node("aten.relu.default", (tensor(0, 2),), (tensor(1, 2),)), target=target).reason == "slow here"


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (Node("aten.nonzero.default", (tensor(0, 3),), (tensor(1, 3, dtype=DType.i64),)), "depends on the values"),
        (
            Node("aten.index.Tensor", (tensor(0, 3), (tensor(1, 3, dtype=DType.bool),)), (tensor(2, "n"),)),
            "depends on its values",
        ),
        (Node("aten.atan.default", (tensor(0, 3, dtype=DType.c64),), (tensor(1, 3, dtype=DType.c64),)), "complex"),
        (
            Node(
                "aten.div.Tensor_mode",
                (tensor(0, 3, dtype=DType.i64), tensor(1, 3, dtype=DType.i64), "floor"),
                (tensor(2, 3, dtype=DType.i64),),
            ),
            "eager raises on a zero",
        ),
        (
            Node("aten.as_strided.default", (tensor(0, 4), (2,), (2,), 0), (tensor(1, 2),)),
            "reads memory, not elements",
        ),
    ],
    ids=lambda x: x.op if isinstance(x, Node) else "",
)
def test_a_node_that_onnx_cannot_express_exactly_is_declined(node: Node, reason: str) -> None:
    assert reason in supports(node, target=PLAIN).reason


def test_weights_are_inputs_and_their_bytes_are_never_in_the_model() -> None:
    x, weight, out = tensor(0, 4, 1000), tensor(1, 1000, 1000), tensor(2, 4, 1000)
    g = graph([x, weight], [Node("aten.linear.default", (x, weight, None), (out,))], out)
    lowered = lower(g, target=CONTRIB)
    assert lowered.inputs == ("in0", "in1")
    lowered.externalize([1])
    assert [v.name for v in lowered.model.graph.inputs] == ["in0"]
    assert len(lowered.file().model) < 1000


def test_a_linear_uses_its_weight_as_it_lies_where_the_runtime_can() -> None:
    x, weight, out = tensor(0, 4, 8), tensor(1, 3, 8), tensor(2, 4, 3)
    g = graph([x, weight], [Node("aten.linear.default", (x, weight, None), (out,))], out)
    assert ops(g, CONTRIB) == ["Gemm"]
    assert ops(g, PLAIN) == ["Transpose", "MatMul"]


@pytest.mark.parametrize(("bias", "expected"), [(True, ["Reshape", "Gemm", "Reshape"]), (False, ["FusedMatMul"])])
def test_a_linear_of_a_batch_is_reshaped_for_the_sake_of_a_bias_alone(bias: bool, expected: list[str]) -> None:
    x, weight, shift, out = tensor(0, 2, 4, 8), tensor(1, 3, 8), tensor(2, 3), tensor(3, 2, 4, 3)
    g = graph([x, weight, shift], [Node("aten.linear.default", (x, weight, shift if bias else None), (out,))], out)
    assert ops(g, CONTRIB) == [*expected]


def test_equal_steps_are_written_once_and_unused_ones_not_at_all() -> None:
    x, a, b, unused = tensor(0, 2), tensor(1, 2), tensor(2, 2), tensor(3, 2)
    nodes = [
        Node("aten.exp.default", (x,), (a,)),
        Node("aten.exp.default", (x,), (b,)),
        Node("aten.sin.default", (x,), (unused,)),
    ]
    out = tensor(4, 2)
    g = graph([x], [*nodes, Node("aten.add.Tensor", (a, b, 1), (out,))], out)
    assert ops(g) == ["Exp", "Add"]


def test_an_input_that_nothing_reads_has_no_name() -> None:
    x, y, out = tensor(0, 2), tensor(1, 2), tensor(2, 2)
    assert lower(graph([x, y], [Node("aten.exp.default", (y,), (out,))], out), target=PLAIN).inputs == (None, "in1")


def test_halves_are_computed_in_f32_and_stored_as_they_were() -> None:
    x, y, out = (tensor(i, 2, dtype=DType.bf16) for i in range(3))
    nodes = [Node("aten.exp.default", (x,), (y,)), Node("aten.sin.default", (y,), (out,))]
    assert ops(graph([x], nodes, out)) == ["Cast", "Exp", "Sin", "Cast"]


def test_a_half_is_rounded_before_an_op_that_would_blow_up_the_difference() -> None:
    x, y, out = tensor(0, 2, dtype=DType.bf16), tensor(1, 2, dtype=DType.bf16), tensor(2, 2, dtype=DType.bool)
    nodes = [Node("aten.exp.default", (x,), (y,)), Node("aten.lt.Tensor", (y, 0.5), (out,))]
    assert ops(graph([x], nodes, out)) == ["Cast", "Exp", "Cast", "Cast", "Less"]


def test_an_element_type_without_a_kernel_is_widened_and_narrowed_again() -> None:
    x, out = tensor(0, 2, dtype=DType.i8), tensor(1, 2, dtype=DType.i8)
    assert ops(graph([x], [Node("aten.neg.default", (x,), (out,))], out)) == ["Cast", "Neg", "Cast"]


def test_one_symbolic_dimension_of_a_view_is_left_to_the_runtime() -> None:
    x, out = tensor(0, "s", 6), tensor(1, "s", 2, 3)
    node = Node("aten.view.default", (x, (DimExpr("s"), 2, 3)), (out,))
    assert ops(graph([x], [node], out, symbols=(Symbol("s", 2, None, (0, 0)),))) == ["Reshape"]


def test_a_symbol_is_read_from_the_shape_of_its_input_or_from_an_integer_input() -> None:
    x, n = tensor(0, "s"), Value(1, ScalarType(DType.i64))
    out = tensor(2, "s + n", dtype=DType.i64)
    end = DimExpr("n + s")
    node = Node("aten.arange.start_step", (0, end, 1, Token("dtype", "i64"), None, None, None), (out,))
    g = graph([x, n], [node], out, symbols=(Symbol("s", 0, None, (0, 0)), Symbol("n", 0, None, (1, None))))
    assert set(ops(g)) == {"Shape", "Reshape", "Add", "Range"}


def test_the_same_graph_gives_the_same_bytes() -> None:
    x, out = tensor(0, 2, 3), tensor(1, 2, 3)
    g = graph([x], [Node("aten.gelu.default", (x, "tanh"), (out,))], out)
    assert lower(g, target=PLAIN).file() == lower(g, target=PLAIN).file()


def test_an_output_that_other_nodes_read_is_not_copied() -> None:
    x, middle, out = tensor(0, 2), tensor(1, 2), tensor(2, 2)
    nodes = [Node("aten.exp.default", (x,), (middle,)), Node("aten.neg.default", (middle,), (out,))]
    assert ops(graph([x], nodes, middle, out)) == ["Exp", "Neg"]


def test_outputs_that_are_one_tensor_have_names_of_their_own() -> None:
    x, one, two = tensor(0, 2), tensor(1, 2), tensor(2, 2)
    nodes = [Node("aten.exp.default", (x,), (r,)) for r in (one, two)]
    lowered = lower(graph([x], nodes, one, two), target=PLAIN)
    assert [node.op_type for node in lowered.model.graph] == ["Exp", "Identity"]
    assert lowered.outputs == ("out0", "out1")


def looked_up(reduction: str) -> Graph:
    """Rows of a table of 8, three for each of five bags, and what they are reduced to."""
    table, places = tensor(0, 8, 2), tensor(1, 5, 3, dtype=DType.i64)
    rows, out = tensor(2, 5, 3, 2), tensor(3, 5, 2)
    nodes = [
        Node("aten.embedding.default", (table, places, -1, False, False), (rows,)),
        Node(reduction, (rows, (1,), False, None), (out,)),
    ]
    return graph([table, places], nodes, out)


@pytest.mark.parametrize(
    ("target", "asks"),
    [(PLAIN, False), (Target(name="demo", wraps=True), True), (Target(name="demo", unchecked=True), True)],
)
def test_an_index_is_asked_about_where_the_runtime_goes_on_with_it(target: Target, asks: bool) -> None:
    lowered = lower(looked_up("aten.sum.dim_IntList"), target=target)
    assert (lowered.check is not None) is asks
    assert len(lowered.model.graph.outputs) == 1 + asks


def test_an_index_from_the_end_is_asked_about_where_the_runtime_goes_on_with_any() -> None:
    x, at, out = tensor(0, 8), tensor(1, 3, dtype=DType.i64), tensor(2, 3)
    g = graph([x, at], [Node("aten.index.Tensor", (x, (at,)), (out,))], out)
    assert lower(g, target=Target(name="demo", wraps=True)).check is None
    assert lower(g, target=Target(name="demo", unchecked=True)).check is not None


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("aten.sum.dim_IntList", ["EmbeddingBag"]), ("aten.mean.dim", ["EmbeddingBag", "Div"])],
)
def test_rows_that_are_looked_up_and_added_are_one_op_where_the_runtime_has_it(
    reduction: str, expected: list[str]
) -> None:
    g = looked_up(reduction)
    pools = Target(name="demo", pools=True)
    nodes = list(lower(g, target=pools).model.graph)
    assert [n.op_type for n in nodes if n.op_type not in ("Reshape", "Cast")] == expected
    assert nodes[0].domain == DOMAIN
    assert "Gather" in ops(g)


def test_an_index_within_a_branch_is_not_guarded_since_nothing_can_say_that_it_was_wrong() -> None:
    truth = Value(0, TensorType(DType.bool, ()))
    x, at, out = tensor(1, 8, 3), tensor(2, 4, 3, dtype=DType.i64), tensor(3, 4, 3)
    node = Node("aten.gather.default", (x, 0, at, False), (out,))
    branch = Graph("b", Kind.region, (Input(x), Input(at)), (node,), (Output(out),), ())
    result = tensor(4, 4, 3)
    g = graph([truth, x, at], [Node("hop.cond", (truth, (x, at)), (result,), regions=(branch, branch))], result)
    lowered = lower(g, target=Target(name="demo", unchecked=True))
    (chosen,) = (n for n in lowered.model.graph if n.op_type == "If")
    body = [n.op_type for n in chosen.attributes["then_branch"].value]
    assert "GatherElements" in body
    assert "Where" not in body
    assert lowered.check is None
