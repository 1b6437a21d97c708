"""The meaning of a graph, op by op, and the layout of its results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.errors import IRFormatError
from fairlead.interpret import Packing, _attention, restride, run, to_fx
from fairlead.ir import (
    Argument,
    Complex,
    Dim,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Location,
    Node,
    Output,
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Type,
    Value,
    dims,
    verify,
)

STRIDED, CPU = Token("layout", "strided"), Token("device", "cpu")


def t(dtype: str, *shape: Dim, strides: tuple[Dim, ...] | None = None) -> TensorType:
    return TensorType(DType(dtype), shape, strides)


def f32(*shape: Dim) -> TensorType:
    return t("f32", *shape)


def one(op: str, args: Sequence[Any], to: Type, *inputs: Value, symbols: tuple[Symbol, ...] = ()) -> Graph:
    """A graph of one op with one result."""
    out = Value(100, to)
    node = Node(op, tuple(args), (out,))
    return verify(Graph("g", Kind.inference, tuple(map(Input, inputs)), (node,), (Output(out),), symbols))


X = Value(0, f32(3))
x = torch.tensor([1.0, -2.0, 3.0])


def test_a_copy_lies_as_its_type_says() -> None:
    turned = Value(0, t("f32", 2, 3, strides=(1, 2)))
    given = torch.arange(6.0).view(3, 2).t()
    for strides in (None, (1, 2)):
        graph = one("aten.clone.default", (turned, None), t("f32", 2, 3, strides=strides), turned)
        (copy,) = run(graph, [given])
        assert copy.stride() == (strides or (3, 1))
        torch.testing.assert_close(copy, given)


@pytest.mark.parametrize(
    ("op", "args", "dtype", "expected"),
    [
        ("aten.add.Tensor", (X, 2, 3), "f32", x + 6),
        ("aten.add.Tensor", (X, 2.5, 1), "f32", x + 2.5),
        ("aten.mul.Tensor", (X, True), "f32", x),
        ("aten.sub.Tensor", (2, X, 1), "f32", 2 - x),
        ("aten.div.Tensor", (1, X), "f32", 1 / x),
        ("aten.div.Tensor_mode", (X, 2, "floor"), "f32", torch.tensor([0.0, -1.0, 1.0])),
        ("aten.div.Tensor_mode", (X, 2, None), "f32", x / 2),
        ("aten.pow.Tensor_Tensor", (2, X), "f32", torch.tensor([2.0, 0.25, 8.0])),
        ("aten.pow.Tensor_Scalar", (X, -1), "f32", 1 / x),
        ("aten.remainder.Tensor", (7, X), "f32", torch.tensor([0.0, -1.0, 1.0])),
        ("aten.gt.Tensor", (X, 0), "bool", torch.tensor([True, False, True])),
        ("aten.mul.Tensor", (X, math.inf), "f32", x * math.inf),
        ("aten.mul.Tensor", (X, Complex(0.0, 1.0)), "c64", x * 1j),
        ("aten.add.Tensor", (X, Complex(1.0, -2.0), 1), "c64", x + (1 - 2j)),
    ],
)
def test_a_number_may_stand_in_a_tensor_slot(
    op: str, args: tuple[Argument, ...], dtype: str, expected: torch.Tensor
) -> None:
    (found,) = run(one(op, args, t(dtype, 3), X), [x])
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("a", "b"), [(X, 0.0), (0.0, X)])
def test_either_side_of_where_may_be_a_number(a: Argument, b: Argument) -> None:
    condition = Value(1, t("bool", 3))
    (found,) = run(one("aten.where.self", (condition, a, b), f32(3), X, condition), [x, x > 0])
    assert found.tolist() == ([1.0, 0.0, 3.0] if a is X else [0.0, -2.0, 0.0])


def test_a_number_does_not_change_the_dtype_of_a_tensor() -> None:
    for dtype, torch_dtype in (("bf16", torch.bfloat16), ("i32", torch.int32), ("f64", torch.float64)):
        y = Value(0, t(dtype, 3))
        assert run(one("aten.add.Tensor", (y, 2, 1), y.type, y), [x.to(torch_dtype)])[0].dtype is torch_dtype


def test_scalars_of_the_signature_stay_numbers() -> None:
    graph = one("aten.clamp.default", (X, -1, None), f32(3), X)
    assert run(graph, [x])[0].tolist() == [1.0, -1.0, 3.0]


def test_names_and_lists_reach_the_op() -> None:
    graph = one("aten.full.default", ((2, 3), 1.5, Token("dtype", "bf16"), STRIDED, CPU, False), t("bf16", 2, 3))
    (found,) = run(graph, [])
    assert (found.dtype, found.shape, found.unique().tolist()) == (torch.bfloat16, (2, 3), [1.5])


def test_memory_formats_and_strings_reach_the_op() -> None:
    y = Value(0, f32(1, 2, 3, 4))
    last = Token("memory_format", "channels_last")
    (found,) = run(one("aten.clone.default", (y, last), y.type, y), [torch.ones(1, 2, 3, 4)])
    assert found.is_contiguous(memory_format=torch.channels_last)
    (tanh,) = run(one("aten.gelu.default", (X, "tanh"), f32(3), X), [x])
    torch.testing.assert_close(tanh, torch.nn.functional.gelu(x, approximate="tanh"))


def test_lists_may_hold_tensors_and_none() -> None:
    y, index = Value(0, f32(2, 3)), Value(1, t("i64", 2))
    graph = one("aten.index.Tensor", (y, (None, index)), f32(2, 2), y, index)
    assert run(graph, [torch.arange(6.0).view(2, 3), torch.tensor([2, 0])])[0].tolist() == [[2.0, 0.0], [5.0, 3.0]]


def test_a_view_is_a_logical_reshape() -> None:
    y = Value(0, t("f32", 3, 2, strides=(1, 3)))
    turned = torch.arange(6.0).view(2, 3).t()
    (found,) = run(one("aten.view.default", (y, (6,)), f32(6), y), [turned])
    assert found.tolist() == turned.reshape(6).tolist()


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        ("n", 7),
        ("n + 2", 9),
        ("2*n - 3", 11),
        ("-n + 10", 3),
        ("((n + 1)//2)", 4),
        ("(n%4)", 3),
        ("min(5, n)", 5),
        ("max(m, n, 3)", 7),
        ("m*n + m", 16),
        ("(n//m)*m", 6),
    ],
)
def test_sizes_are_expressions_over_symbols(expr: str, value: int) -> None:
    expr = str(dims.normalize(expr))
    y, z = Value(0, f32("m", "n")), Value(100, f32(expr))
    args = ((DimExpr(expr),), 1.0, Token("dtype", "f32"), STRIDED, CPU, False)
    symbols = (Symbol("m", 2, None, (0, 0)), Symbol("n", 2, None, (0, 1)))
    outputs = (Output(z), Output(DimExpr(expr)))
    graph = Graph("g", Kind.inference, (Input(y),), (Node("aten.full.default", args, (z,)),), outputs, symbols)
    full, size = run(verify(graph), [torch.ones(2, 7)])
    assert (tuple(full.shape), size) == ((value,), value)


def test_a_symbol_may_be_an_input_itself() -> None:
    n = Value(1, ScalarType(DType.i64))
    graph = one("aten.mul.Tensor", (X, DimExpr("2*n")), f32(3), X, n, symbols=(Symbol("n", 2, None, (1, None)),))
    assert run(graph, [x, 4])[0].tolist() == [8.0, -16.0, 24.0]


def test_outputs_are_values_numbers_and_none_in_order() -> None:
    y = Value(1, f32(3))
    outputs = (Output(None), Output(X), Output(4), Output(y), Output(y))
    graph = Graph("g", Kind.inference, (Input(X),), (Node("aten.neg.default", (X,), (y,)),), outputs)
    none, same, four, first, second = run(verify(graph), [x])
    assert (none, four) == (None, 4)
    assert same is x
    assert first is second
    assert first.tolist() == [-1.0, 2.0, -3.0]


def test_results_are_picked_out_of_tuples_and_lists() -> None:
    y = Value(0, f32(2, 3))
    largest, index = Value(1, f32(2)), Value(2, t("i64", 2))
    row = Value(3, f32(3))
    nodes = (
        Node("aten.max.dim", (y, 1, False), (largest, index)),
        Node("aten.unbind.int", (y, 0), (None, row)),
    )
    graph = Graph("g", Kind.inference, (Input(y),), nodes, tuple(map(Output, (index, largest, row))))
    found = run(verify(graph), [torch.tensor([[1.0, 5.0, 2.0], [7.0, 0.0, 3.0]])])
    assert [f.tolist() for f in found] == [[1, 0], [5.0, 7.0], [7.0, 0.0, 3.0]]


def test_gradients_are_off() -> None:
    (found,) = run(one("aten.neg.default", (X,), f32(3), X), [x.clone().requires_grad_()])
    assert not found.requires_grad


def test_a_graph_becomes_a_module_that_runs_again_and_again() -> None:
    module = to_fx(one("aten.neg.default", (X,), f32(3), X))
    assert module.__class__.__name__ == "fairlead_g"
    assert [module(v)[0].tolist() for v in (x, -x)] == [[-1.0, 2.0, -3.0], [1.0, -2.0, 3.0]]


def test_random_numbers_come_from_torch() -> None:
    args = ((100,), 0.25, Token("dtype", "bool"), CPU)
    graph = one("nn.bernoulli.default", args, t("bool", 100))
    torch.manual_seed(1)
    (found,) = run(graph, [])
    torch.manual_seed(1)
    assert torch.equal(found, torch.empty(100, dtype=torch.bool).bernoulli_(0.25))


def test_attention_takes_rows_that_are_not_dense() -> None:
    heads = t("f32", 1, 2, 5, 4)
    q, k, v = (Value(i, heads) for i in range(3))
    out = Value(3, heads)
    node = Node("nn.scaled_dot_product_attention", (q, k, v, None, 0.0, False, 0.5), (out, None))
    graph = Graph("g", Kind.inference, (Input(q), Input(k), Input(v)), (node,), (Output(out),))
    given = [torch.randn(1, 2, 4, 5).transpose(2, 3) for _ in range(3)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        wanted = torch.nn.functional.scaled_dot_product_attention(*given)
    torch.testing.assert_close(run(verify(graph), given)[0], wanted)


@pytest.mark.parametrize(("heads", "causal", "is_masked"), [(4, False, False), (2, True, False), (2, False, True)])
def test_attention_in_steps_is_that_of_the_cpus_kernel(heads: int, causal: bool, is_masked: bool) -> None:
    """Other devices have no kernel that keeps what the CPU's keeps for its backward."""
    q, grad = torch.randn(2, 2, 4, 5, 8).unbind(0)
    k, v = torch.randn(2, 2, heads, 7, 8).unbind(0)
    mask = torch.randn(5, 7) if is_masked else None
    ops: Any = torch.ops.aten
    out, lse = ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask, scale=0.3)
    gradients = ops._scaled_dot_product_flash_attention_for_cpu_backward(
        grad, q, k, v, out, lse, 0.0, causal, attn_mask=mask, scale=0.3
    )
    torch.testing.assert_close(_attention.attention(q, k, v, mask, causal, 0.3), (out, lse))
    found = _attention.attention_backward(grad, q, k, v, out, lse, mask, causal, 0.3)
    torch.testing.assert_close(found, tuple(gradients))


def test_an_op_that_reads_memory_gets_the_strides_it_was_captured_with() -> None:
    y = Value(0, t("f32", 2, 3, strides=(1, 2)))
    graph = one("aten.as_strided.default", (y, (6,), (1,), 0), f32(6), y)
    row_major = torch.arange(6.0).view(2, 3)
    assert run(graph, [row_major])[0].tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    assert run(graph, [row_major.t().contiguous().t()])[0].tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


def test_a_custom_op_gets_the_strides_it_was_captured_with() -> None:
    @torch.library.custom_op("fairlead_test::in_memory", mutates_args=())
    def in_memory(value: torch.Tensor) -> torch.Tensor:
        return value.as_strided((value.numel(),), (1,)).clone()

    y = Value(0, t("f32", "n", 3, strides=(1, "n")))
    symbols = (Symbol("n", 2, None, (0, 0)),)
    graph = one("fairlead_test.in_memory.default", (y,), f32("3*n"), y, symbols=symbols)
    assert run(graph, [torch.arange(6.0).view(2, 3)])[0].tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


RELEASE = "use a torch release that has it"


@pytest.mark.parametrize(
    ("op", "remedy"),
    [
        ("aten.frobnicate.default", RELEASE),
        ("aten.add.Frobnicated", RELEASE),
        ("nn.frob.default", RELEASE),
        ("frobs.frob.default", "import the library that registers the operators of frobs"),
    ],
)
def test_an_op_that_is_not_here_is_named(op: str, remedy: str) -> None:
    with pytest.raises(IRFormatError) as caught:
        run(one(op, (X,), f32(3), X), [x])
    assert str(caught.value) == (
        f"FL601: the op {op} does not exist here\n  from: torch {torch.__version__}\n  next: {remedy}"
    )


def test_an_op_with_too_few_arguments_is_named() -> None:
    node = Node("aten.add.Tensor", (X, X), (Value(1, f32(3)),), Location("model.py", 3))
    graph = Graph("g", Kind.inference, (Input(X),), (node,), (Output(node.result),))
    with pytest.raises(IRFormatError) as caught:
        to_fx(graph)
    assert str(caught.value) == (
        "FL601: aten.add.Tensor takes 3 arguments, not 2\n"
        f"  from: torch {torch.__version__}; model.py:3\n"
        "  next: write one argument for each parameter of the op's signature, defaults included"
    )


@st.composite
def layouts(draw: st.DrawFn) -> tuple[torch.Tensor, tuple[int, ...]]:
    """A tensor that lies anyhow, and strides that another tensor of its shape and of its values can have."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=4)))
    order = draw(st.permutations(range(len(shape))))
    gap = draw(st.integers(1, 3))
    given = (
        torch.arange(float(math.prod(shape)))
        .view([shape[i] for i in order])
        .permute([order.index(i) for i in range(len(shape))])
    )
    wanted, step = [0] * len(shape), gap
    for axis in draw(st.permutations(range(len(shape)))):
        wanted[axis] = step if shape[axis] != 1 else draw(st.integers(0, 99))
        step *= max(shape[axis], 1)
    for axis in draw(st.sets(st.sampled_from(range(len(shape))))) if shape else ():
        given = given.narrow(axis, 0, min(1, shape[axis])).expand(shape)
        wanted[axis] = 0
    return given, tuple(wanted)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(layouts())
def test_another_layout_keeps_shape_dtype_and_values(case: tuple[torch.Tensor, tuple[int, ...]]) -> None:
    given_tensor, strides = case
    found = restride(given_tensor, strides)
    assert found.stride() == strides
    assert found.shape == given_tensor.shape
    assert torch.equal(found, given_tensor)


def test_a_tensor_that_has_the_strides_is_returned_itself() -> None:
    y = torch.ones(2, 3)
    assert restride(y, (3, 1)) is y


def test_where_only_dimensions_of_size_one_differ_memory_is_shared() -> None:
    y = torch.ones(2, 1, 3)
    found = restride(y, (3, 77, 1))
    assert found.stride() == (3, 77, 1)
    assert found.data_ptr() == y.data_ptr()


def test_another_layout_is_other_memory() -> None:
    y = torch.arange(6.0).view(2, 3)
    found = restride(y, (1, 2))
    found.zero_()
    assert y.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(("size", "step"), [(3, 1), (3, 2), (2, 1)])
def test_windows_that_overlap_lie_over_each_other(size: int, step: int) -> None:
    windows = torch.arange(14.0).view(2, 7).unfold(1, size, step)
    found = restride(windows.contiguous(), windows.stride())
    assert found.stride() == windows.stride()
    assert torch.equal(found, windows)


def test_a_broadcast_layout_holds_each_element_once() -> None:
    found = restride(torch.ones(4, 3), (0, 1))
    assert found.stride() == (0, 1)
    assert found.untyped_storage().nbytes() == 3 * 4


def test_packed_copies_are_laid_out_as_asked_in_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.interpret._copies._DEVICE", "cpu")
    given = [
        *(torch.randn(4, 4), torch.randn(8), torch.randn(4, 8).t(), torch.randn(4, 2, 3).transpose(0, 1)),
        *(torch.randn(3), torch.ones(16, dtype=torch.int64), torch.zeros(0, 4), torch.arange(8.0).view(2, 4)),
    ]
    is_row_major = [k != 3 for k in range(len(given))]
    found = Packing(given, is_row_major).copies(given)
    for mine, theirs, rows in zip(found, given, is_row_major, strict=True):
        assert torch.equal(mine, theirs)
        assert mine.stride() == (theirs.contiguous() if rows else theirs).stride()
    assert found[0].untyped_storage().data_ptr() == found[7].untyped_storage().data_ptr()
    packed = [(t.data_ptr(), t.nbytes) for t in found if t.nbytes]
    assert len({address for address, _ in packed}) == len(packed)
    assert not {t.untyped_storage().data_ptr() for t in given if t.nbytes} & {
        t.untyped_storage().data_ptr() for t in found if t.nbytes
    }
