"""Scalars, factories, reductions and attention in one form."""

from __future__ import annotations

import pytest
import torch

from fairlead.interpret import run
from fairlead.ir import Argument, Complex, Dim, DimExpr, DType, Kind, TensorType, Token, Value
from fairlead.passes import canonicalize

from ._build import CPU, F32, STRIDED, Builder, f32, nodes_of, rewritten, text, typed


def canonical(op: str, *args: Argument, to: TensorType, source: TensorType | None = None) -> str:
    """The canonical form of ``op(x, *args)`` on one line."""
    b = Builder()
    graph = b.graph(b(op, b.input(source or to), *args, to=to))
    *lines, _ = nodes_of(canonicalize(graph)).splitlines()
    return "; ".join(lines)


def made(op: str, *args: Argument, to: TensorType) -> str:
    """The same of an op without a tensor."""
    b = Builder()
    for dim in to.shape:
        if isinstance(dim, str):
            b.symbol(dim)
    return nodes_of(canonicalize(b.graph(b(op, *args, to=to)))).splitlines()[0].partition(" = ")[2]


@pytest.mark.parametrize("op", ["mul", "eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "bitwise_and", "div"])
def test_a_number_stands_where_a_tensor_would(op: str) -> None:
    assert canonical(f"aten.{op}.Scalar", 2, to=f32(3)) == f"%2 = aten.{op}.Tensor(%0, 2) : f32[3]"


@pytest.mark.parametrize("op", ["add", "sub"])
def test_sums_with_a_number_keep_their_factor(op: str) -> None:
    assert canonical(f"aten.{op}.Scalar", 2.5, 3, to=f32(3)) == f"%2 = aten.{op}.Tensor(%0, 2.5, 3) : f32[3]"


def test_a_fused_multiply_add_is_a_product_and_a_sum() -> None:
    b = Builder()
    x, z = b.input(f32(2, 3)), b.input(f32(3))
    graph = b.graph(b("prims.fma.default", x, 0.5, z, to=f32(2, 3)))
    *lines, _ = nodes_of(canonicalize(graph)).splitlines()
    assert lines == ["%3 = aten.mul.Tensor(%0, 0.5) : f32[2, 3]", "%4 = aten.add.Tensor(%3, %1, 1) : f32[2, 3]"]


def test_a_rounded_quotient_keeps_its_mode() -> None:
    wanted = '%2 = aten.div.Tensor_mode(%0, 2, "floor") : f32[3]'
    assert canonical("aten.div.Scalar_mode", 2, "floor", to=f32(3)) == wanted


def test_true_divide_is_div() -> None:
    assert canonical("aten.true_divide.Tensor", 2, to=f32(3)) == "%2 = aten.div.Tensor(%0, 2) : f32[3]"


@pytest.mark.parametrize("exponent", [2, 0.5, -1, 1.5, DimExpr("b")])
def test_powers_stay(exponent: Argument) -> None:
    found = canonical("aten.pow.Tensor_Scalar", exponent, to=f32("b"))
    assert found.startswith("%1 = aten.pow.Tensor_Scalar(%0, ")


def test_the_first_power_of_another_dtype_stays() -> None:
    found = canonical("aten.pow.Tensor_Scalar", 1.0, source=typed("i64", 3), to=f32(3))
    assert found == "%1 = aten.pow.Tensor_Scalar(%0, 1.0) : f32[3]"


FULL = "#dtype<f32>, #layout<strided>, #device<cpu>, false) : f32"


@pytest.mark.parametrize(
    ("op", "fill", "wanted"),
    [
        ("aten.full_like.default", (2.5,), "2.5"),
        ("aten.full_like.default", (DimExpr("b"),), "<b>"),
        ("aten.zeros_like.default", (), "0"),
        ("aten.ones_like.default", (), "1"),
        ("aten.empty_like.default", (), "0"),
    ],
)
def test_tensors_like_another_are_full(op: str, fill: tuple[Argument, ...], wanted: str) -> None:
    found = canonical(op, *fill, None, None, None, None, None, to=f32("b", 3))
    assert found == f"%2 = aten.full.default([<b>, 3], {wanted}, {FULL}[b, 3]"


def test_a_tensor_like_another_does_not_read_it() -> None:
    b = Builder()
    relu = b("aten.relu.default", b.input(f32(2)), to=f32(2))
    like = b("aten.zeros_like.default", relu, None, None, None, None, None, to=f32(2))
    assert [n.op for n in canonicalize(b.graph(like)).nodes] == ["aten.full.default"]


@pytest.mark.parametrize(
    ("op", "args", "wanted"),
    [
        ("aten.full.default", ((2,), 7, None, None, None, None), "7"),
        ("aten.zeros.default", ((2,), None, None, None, None), "0"),
        ("aten.ones.default", ((2,), None, None, None, None), "1"),
        ("aten.empty.memory_format", ((2,), None, None, None, None, None), "0"),
        ("aten.empty_strided.default", ((2,), (3,), None, None, None, None), "0"),
        ("aten.empty_permuted.default", ((2,), (0,), None, None, None, None), "0"),
        ("aten._efficientzerotensor.default", ((2,), None, None, None, None), "0"),
    ],
)
def test_factories_are_full(op: str, args: tuple[Argument, ...], wanted: str) -> None:
    assert made(op, *args, to=f32(2)) == f"aten.full.default([2], {wanted}, {FULL}[2]"


def test_a_scalar_tensor_has_no_dimensions() -> None:
    found = made("aten.scalar_tensor.default", -1.5, F32, None, None, None, to=f32())
    assert found == f"aten.full.default([], -1.5, {FULL}[]"


@pytest.mark.parametrize(("fill", "wanted"), [(1, "true"), (0.0, "false"), (True, "true")])
def test_a_bool_is_filled_with_a_bool(fill: Argument, wanted: str) -> None:
    found = made("aten.full.default", (2,), fill, Token("dtype", "bool"), None, None, None, to=typed("bool", 2))
    assert found == f"aten.full.default([2], {wanted}, #dtype<bool>, #layout<strided>, #device<cpu>, false) : bool[2]"


def test_a_complex_number_fills_as_it_is() -> None:
    found = made("aten.full.default", (2,), Complex(1.0, -2.0), None, None, None, None, to=typed("c64", 2))
    assert found.startswith("aten.full.default([2], #complex<1.0, -2.0>, #dtype<c64>")


def test_a_full_tensor_in_canonical_form_stays() -> None:
    b = Builder()
    graph = b.graph(b("aten.full.default", (2,), 1.0, F32, STRIDED, CPU, False, to=f32(2)))
    assert canonicalize(graph) == graph


@pytest.mark.parametrize("op", ["rand", "randn"])
def test_random_tensors_like_another_do_not_read_it(op: str) -> None:
    found = canonical(f"aten.{op}_like.default", None, None, None, None, None, to=f32("b"))
    assert found == f"%2 = aten.{op}.default([<b>], #dtype<f32>, #layout<strided>, #device<cpu>, false) : f32[b]"


@pytest.mark.parametrize("op", ["rand", "randn"])
def test_random_tensors_like_another_are_drawn_in_the_order_of_memory(op: str) -> None:
    b = Builder()
    x = b.input(f32(3, 4, strides=(1, 3)))
    like = b(f"aten.{op}_like.default", x, None, None, None, None, None, to=x.tensor)
    torch.manual_seed(5)
    wanted = getattr(torch, f"{op}_like")(torch.ones(4, 3).t())
    torch.manual_seed(5)
    (found,) = run(canonicalize(b.graph(like)), [torch.ones(4, 3).t()])
    assert torch.equal(found, wanted)
    assert found.stride() == wanted.stride()


@pytest.mark.parametrize(
    ("op", "bounds", "wanted"),
    [
        ("aten.randint_like.default", (7,), "0, 7"),
        ("aten.randint_like.low_dtype", (-3, 7), "-3, 7"),
    ],
)
def test_random_integers_like_another_have_a_lower_bound(op: str, bounds: tuple[int, ...], wanted: str) -> None:
    found = canonical(op, *bounds, None, None, None, None, None, to=f32("b"))
    rest = "[<b>], #dtype<f32>, #layout<strided>, #device<cpu>, false"
    assert found == f"%2 = aten.randint.low({wanted}, {rest}) : f32[b]"


def test_random_integers_have_a_lower_bound() -> None:
    found = made("aten.randint.default", 7, (2,), F32, STRIDED, CPU, False, to=f32(2))
    assert found == "aten.randint.low(0, 7, [2], #dtype<f32>, #layout<strided>, #device<cpu>, false) : f32[2]"


@pytest.mark.parametrize(
    ("length", "start", "step", "end"),
    [(5, 0, 1, "5"), (5, 2, 3, "17"), (4, 3, -1, "-1"), (DimExpr("b"), 1, 2, "<2*b + 1>")],
)
def test_iota_is_arange(length: int | DimExpr, start: int, step: int, end: str) -> None:
    size: Dim = length if isinstance(length, int) else length.expr
    found = made("prims.iota.default", length, start, step, Token("dtype", "i64"), CPU, False, to=typed("i64", size))
    args = f"{start}, {end}, {step}, #dtype<i64>, #layout<strided>, #device<cpu>, false"
    assert found == f"aten.arange.start_step({args}) : i64[{size}]"


@pytest.mark.parametrize(
    ("op", "args", "wanted"),
    [
        ("aten.mean.default", (None,), "aten.mean.dim(%0, [0, 1, 2], false, none)"),
        ("aten.sum.default", (F32,), "aten.sum.dim_IntList(%0, [0, 1, 2], false, #dtype<f32>)"),
        ("aten.max.default", (), "aten.amax.default(%0, [0, 1, 2], false)"),
        ("aten.min.default", (), "aten.amin.default(%0, [0, 1, 2], false)"),
        ("aten.any.default", (), "aten.any.dims(%0, [0, 1, 2], false)"),
        ("aten.all.default", (), "aten.all.dims(%0, [0, 1, 2], false)"),
        ("aten.sum.dim_IntList", ((), False, None), "aten.sum.dim_IntList(%0, [0, 1, 2], false, none)"),
        ("aten.mean.dim", (None, False, None), "aten.mean.dim(%0, [0, 1, 2], false, none)"),
        ("aten.amax.default", ((), False), "aten.amax.default(%0, [0, 1, 2], false)"),
        ("aten.amin.default", ((), False), "aten.amin.default(%0, [0, 1, 2], false)"),
        ("aten.any.dims", (None, False), "aten.any.dims(%0, [0, 1, 2], false)"),
        ("aten.var.correction", (None, 1, False), "aten.var.correction(%0, [0, 1, 2], 1, false)"),
        ("aten.var.correction", ((), 0, False), "aten.var.correction(%0, [0, 1, 2], 0, false)"),
    ],
)
def test_a_reduction_of_everything_names_every_dimension(op: str, args: tuple[Argument, ...], wanted: str) -> None:
    assert canonical(op, *args, source=f32(2, 3, 4), to=f32()).endswith(f" = {wanted} : f32[]")


@pytest.mark.parametrize(
    ("op", "args", "wanted"),
    [
        ("aten.sum.dim_IntList", ((-1, 0), False, None), "aten.sum.dim_IntList(%0, [0, 2], false, none)"),
        ("aten.mean.dim", ((2, -3), False, None), "aten.mean.dim(%0, [0, 2], false, none)"),
        ("aten.amax.default", ((2, 0), False), "aten.amax.default(%0, [0, 2], false)"),
        ("aten.all.dims", ((-1, -3), False), "aten.all.dims(%0, [0, 2], false)"),
        ("aten.var.correction", ((2, 0), 1, False), "aten.var.correction(%0, [0, 2], 1, false)"),
    ],
)
def test_the_dimensions_of_a_reduction_are_in_order(op: str, args: tuple[Argument, ...], wanted: str) -> None:
    assert canonical(op, *args, source=f32(2, 3, 4), to=f32(3)).endswith(f" = {wanted} : f32[3]")


@pytest.mark.parametrize("op", ["any", "all"])
def test_any_and_all_over_one_dimension_have_a_list_of_one(op: str) -> None:
    found = canonical(f"aten.{op}.dim", -1, True, source=f32(2, 3), to=typed("bool", 2, 1))
    assert found == f"%1 = aten.{op}.dims(%0, [1], true) : bool[2, 1]"


def test_any_over_no_dimension_stays_one_over_none() -> None:
    found = canonical("aten.any.dims", (), False, source=f32(2, 3), to=typed("bool", 2, 3))
    assert found == "%1 = aten.any.dims(%0, [], false) : bool[2, 3]"


def test_a_reduction_of_a_number_reduces_nothing() -> None:
    assert canonical("aten.sum.dim_IntList", (0,), False, None, to=f32()).endswith("(%0, [], false, none) : f32[]")


def test_mean_and_variance_at_once_name_their_dimensions() -> None:
    b = Builder()
    x = b.input(f32(2, 3))
    variance, _ = b.many("aten.var_mean.correction", x, (-1,), 0, True, to=(f32(2, 1), None))
    assert nodes_of(canonicalize(b.graph(variance))).splitlines()[0] == (
        "%1, _ = aten.var_mean.correction(%0, [1], 0, true) : f32[2, 1], _"
    )


HEADS = f32(2, 4, "s", 16)


def test_flash_attention_of_the_cpu_is_the_composite() -> None:
    b = Builder()
    q, k, v = (b.input(HEADS, name=n) for n in "qkv")
    op = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    out, _ = b.many(op, q, k, v, 0.0, True, None, None, to=(HEADS, None))
    assert rewritten(canonicalize, b.graph(out)) == text(
        """
        symbol s in [2, inf] from in0.dim2
        graph @g inference {
          in %0 user "q" : f32[2, 4, s, 16]
          in %1 user "k" : f32[2, 4, s, 16]
          in %2 user "v" : f32[2, 4, s, 16]
          %3, _ = nn.scaled_dot_product_attention(%0, %1, %2, none, 0.0, true, 0.25) : f32[2, 4, s, 16], _
          out %3 user
        }
        """
    )


def test_flash_attention_keeps_its_mask_its_scale_and_its_logsumexp() -> None:
    b = Builder(Kind.forward)
    q, k, v, mask = (*(b.input(HEADS) for _ in "qkv"), b.input(f32(2, 1, "s", "s")))
    op = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    outs = b.many(op, q, k, v, 0.0, False, mask, 2, to=(HEADS, f32(2, 4, "s")))
    assert nodes_of(canonicalize(b.graph(*outs))).splitlines()[0] == (
        "%4, %5 = nn.scaled_dot_product_attention(%0, %1, %2, %3, 0.0, false, 2.0) : f32[2, 4, s, 16], f32[2, 4, s]"
    )


def test_the_gradient_of_flash_attention_is_that_of_the_composite() -> None:
    b = Builder(Kind.backward)
    grad, q, k, v, out = (b.input(HEADS) for _ in range(5))
    lse, mask = b.input(f32(2, 4, "s")), b.input(f32(2, 1, "s", "s"))
    op = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
    grads = b.many(op, grad, q, k, v, out, lse, 0.0, False, mask, None, to=(HEADS, None, HEADS))
    assert nodes_of(canonicalize(b.graph(*grads))).splitlines()[0] == (
        "%7, _, %8 = nn.scaled_dot_product_attention_backward(%0, %1, %2, %3, %4, %5, %6, 0.0, false, 0.25) "
        ": f32[2, 4, s, 16], _, f32[2, 4, s, 16]"
    )


def test_attention_over_heads_of_unknown_size_stays_as_it_is() -> None:
    b = Builder()
    heads = f32(2, 4, 8, "d")
    op = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    out, _ = b.many(op, *(b.input(heads) for _ in "qkv"), 0.0, False, None, None, to=(heads, None))
    assert canonicalize(b.graph(out)).nodes[0].op == op


STEPS, STATE = f32("t", 2, 3), f32(1, 2, 4)


def rnn_layer(b: Builder, mode: int, workspace: TensorType | None, *, has_biases: bool = True) -> list[Value | None]:
    """A layer of oneDNN's over an input that lies batches first."""
    x = b("aten.permute.default", b.input(f32(2, "t", 3)), (1, 0, 2), to=f32("t", 2, 3, strides=(3, "3*t", 1)))
    rows = b("aten.clone.default", x, None, to=STEPS)
    weights = [b.input(f32(*shape)) for shape in ((16, 3), (16, 4), (16,), (16,))]
    states = [b.input(STATE) for _ in range(2)]
    tail = (True, (), mode, 4, 1, has_biases, False, False, False)
    op = "aten.mkldnn_rnn_layer.default"
    return list(b.many(op, rows, *weights, *states, *tail, to=(f32("t", 2, 4), STATE, None, workspace)))


@pytest.mark.parametrize(("has_biases", "biases"), [(True, "%5, %6"), (False, "none, none")])
def test_a_layer_of_onednns_lstm_is_the_composite(has_biases: bool, biases: str) -> None:
    b = Builder()
    out, hy, *_ = rnn_layer(b, 2, None, has_biases=has_biases)
    found = nodes_of(canonicalize(b.graph(out, hy))).splitlines()
    assert found[1].split(" = ")[1].startswith("nn.lstm(")
    assert f", {biases}, true)" in found[1]
    assert "clone" not in found[0]


@pytest.mark.parametrize(("mode", "workspace"), [(3, None), (2, TensorType(DType.u8, (0,)))])
def test_any_other_layer_of_onednns_reads_a_copy_that_is_row_major(mode: int, workspace: TensorType | None) -> None:
    b = Builder()
    results = rnn_layer(b, mode, workspace)
    ops = [node.op for node in canonicalize(b.graph(*(r for r in results if r is not None))).nodes]
    assert ops == ["aten.permute.default", "aten.clone.default", "aten.mkldnn_rnn_layer.default"]


@pytest.mark.parametrize(("dtype", "kept"), [("f32", "none"), ("f64", "#dtype<f64>")])
def test_a_reduction_names_its_dtype_where_it_is_another(dtype: str, kept: str) -> None:
    b = Builder()
    to, token = TensorType(DType(dtype), (2,)), Token("dtype", dtype)
    x = b.input(f32(2, 3))
    total = b("aten.sum.dim_IntList", x, (1,), False, token, to=to)
    norm = b("aten.linalg_vector_norm.default", x, 2, (1,), False, token, to=to)
    found = nodes_of(canonicalize(b.graph(total, norm))).splitlines()
    assert [line.rpartition(", ")[2].partition(")")[0] for line in found[:2]] == [kept, kept]


@pytest.mark.parametrize(("rows", "copied"), [(3, True), (2, False)])
def test_a_scatter_over_everything_is_a_copy(rows: int, copied: bool) -> None:
    b = Builder()
    base, source = b.input(f32(3, 2)), b.input(f32(rows, 2))
    written = b("aten.slice_scatter.default", base, source, 0, 0, 2**63 - 1 if copied else 2, 1, to=f32(3, 2))
    assert ("aten.clone.default(%1, none)" in nodes_of(canonicalize(b.graph(written)))) == copied


def test_a_scatter_over_everything_takes_the_dtype_of_its_target() -> None:
    b = Builder()
    base, source = b.input(f32(3)), b.input(TensorType(DType.f64, (3,)))
    written = b("aten.slice_scatter.default", base, source, 0, 0, 3, 1, to=f32(3))
    assert "aten._to_copy.default(%1, #dtype<f32>" in nodes_of(canonicalize(b.graph(written)))
