"""What only the weights determine is computed once."""

from __future__ import annotations

import pytest
import torch

from fairlead.interpret import run
from fairlead.ir import Argument, DimExpr, Graph, Role, Token, Value, to_text, verify
from fairlead.passes import draws_random_numbers, hoist

from ._build import CPU, STRIDED, Builder, f32, text, typed


def weight(b: Builder, *shape: int) -> Value:
    return b.input(f32(*shape), Role.parameter, "w")


def exp(b: Builder, x: Value) -> Value:
    return b("aten.exp.default", x, to=x.tensor)


def times(b: Builder, x: Value, y: Value) -> Value:
    return b("aten.mul.Tensor", x, y, to=x.tensor)


def hoisted(graph: Graph, *static: int) -> list[str]:
    """The ops that are hoisted; both graphs keep every rule of the IR."""
    split = hoist(graph, static)
    if split is None:
        return []
    verify(split.main)
    return [n.op for n in verify(split.setup).nodes]


def test_what_depends_on_weights_alone_becomes_a_constant() -> None:
    b = Builder()
    x, w = b.input(f32("b", 3), name="x"), weight(b, 3)
    split = hoist(b.graph(times(b, x, exp(b, w))), {1})
    assert split is not None
    assert to_text(verify(split.setup)) == text(
        """
        symbol b in [2, inf] from in0.dim0
        graph @g_setup inference {
          in %0 user "x" : f32[b, 3]
          in %1 parameter "w" : f32[3]
          %2 = aten.exp.default(%1) : f32[3]
          out %2 intermediate
        }
        """
    )
    assert to_text(verify(split.main)) == text(
        """
        symbol b in [2, inf] from in0.dim0
        graph @g inference {
          in %0 user "x" : f32[b, 3]
          in %1 parameter "w" : f32[3]
          in %2 constant "hoisted_0" : f32[3]
          %3 = aten.mul.Tensor(%0, %2) : f32[b, 3]
          out %3 user
        }
        """
    )


def test_where_nothing_depends_on_weights_alone_nothing_is_hoisted() -> None:
    b = Builder()
    assert hoist(b.graph(times(b, b.input(f32(3)), weight(b, 3))), {1}) is None


def test_an_input_that_is_not_static_is_no_weight() -> None:
    b = Builder()
    x = b.input(f32(3))
    assert hoist(b.graph(times(b, x, exp(b, weight(b, 3)))), ()) is None


def test_a_chain_is_hoisted_as_one_and_only_its_end_is_kept() -> None:
    b = Builder()
    x, w = b.input(f32(3)), weight(b, 3)
    split = hoist(b.graph(times(b, x, exp(b, exp(b, exp(b, w))))), {1})
    assert split is not None
    assert [o.value.id for o in split.setup.outputs if isinstance(o.value, Value)] == [4]
    assert [n.op for n in split.setup.nodes] == ["aten.exp.default"] * 3


def test_a_value_that_both_sides_read_is_kept_once() -> None:
    b = Builder()
    x, w = b.input(f32(3)), weight(b, 3)
    once = exp(b, w)
    split = hoist(b.graph(times(b, times(b, x, once), exp(b, once)), times(b, x, once)), {1})
    assert split is not None
    assert len(split.setup.outputs) == 2
    assert [i.name for i in split.main.inputs] == ["", "w", "hoisted_0", "hoisted_1"]


def test_outputs_are_not_hoisted() -> None:
    b = Builder()
    x, w = b.input(f32(3)), weight(b, 3)
    shown = exp(b, w)
    assert hoisted(b.graph(times(b, x, shown), shown), 1) == []


@pytest.mark.parametrize("op", ["aten.view.default", "aten.unfold.default", "aten.as_strided.default"])
def test_what_an_output_is_a_view_of_is_not_hoisted(op: str) -> None:
    b = Builder()
    kept = exp(b, weight(b, 4))
    args: tuple[Argument, ...] = {
        "aten.view.default": ((2, 2),),
        "aten.unfold.default": (0, 2, 2),
        "aten.as_strided.default": ((2, 2), (2, 1), 0),
    }[op]
    assert hoisted(b.graph(b(op, kept, *args, to=f32(2, 2))), 0) == []


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aten.bernoulli.default", (None,)),
        ("aten.rand_like.default", (None, None, None, None, None)),
        ("aten.randint_like.default", (5, None, None, None, None, None)),
        ("vendor.noisy.default", ()),
    ],
)
def test_random_and_custom_ops_are_not_hoisted(op: str, args: tuple[Argument, ...]) -> None:
    b = Builder()
    x, w = b.input(f32(3)), weight(b, 3)
    assert hoisted(b.graph(times(b, x, b(op, w, *args, to=f32(3)))), 1) == []


def test_every_aten_op_that_draws_random_numbers_is_known() -> None:
    whole = ("attention", "sdp", "softmax", "rnn", "lstm", "gru", "dropout")  # taken apart before, or not with dropout
    unknown = {
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::") and not any(word in name for word in whole)
        for packet, _, overload in [name.removeprefix("aten::").partition(".")]
        for op in [getattr(getattr(torch.ops.aten, packet), overload or "default", None)]
        if op is not None
        and not op._schema.is_mutable
        and torch.Tag.nondeterministic_seeded in op.tags
        and not draws_random_numbers(str(op))
    }
    assert unknown <= {"aten::rrelu"}  # captured as rrelu_with_noise


def test_what_has_a_symbolic_size_is_not_hoisted() -> None:
    b = Builder()
    x, w = b.input(f32("b")), weight(b, 1)
    wide = b("aten.expand.default", exp(b, w), (DimExpr("b"),), False, to=f32("b"))
    assert hoisted(b.graph(times(b, x, exp(b, wide))), 1) == ["aten.exp.default"]


def test_what_a_symbolic_number_enters_is_not_hoisted() -> None:
    b = Builder()
    x, w = b.input(f32("b")), weight(b, 1)
    scaled = b("aten.mul.Tensor", w, DimExpr("b"), to=f32(1))
    assert hoisted(b.graph(b("aten.mul.Tensor", x, scaled, to=f32("b"))), 1) == []


def test_a_view_of_a_weight_is_made_each_time() -> None:
    b = Builder()
    x, w = b.input(f32(3, 2)), weight(b, 2, 3)
    turned = b("aten.permute.default", w, (1, 0), to=f32(3, 2))
    assert hoist(b.graph(times(b, x, turned)), {1}) is None


def test_a_view_that_only_hoisted_nodes_read_goes_with_them() -> None:
    b = Builder()
    x, w = b.input(f32(3, 2)), weight(b, 2, 3)
    turned = b("aten.permute.default", w, (1, 0), to=f32(3, 2))
    assert hoisted(b.graph(times(b, x, exp(b, turned))), 1) == ["aten.permute.default", "aten.exp.default"]


def test_a_view_that_both_read_is_made_on_both_sides() -> None:
    b = Builder()
    x, w = b.input(f32(3, 2)), weight(b, 2, 3)
    turned = b("aten.permute.default", w, (1, 0), to=f32(3, 2))
    graph = b.graph(times(b, times(b, x, turned), exp(b, turned)))
    split = hoist(graph, {1})
    assert split is not None
    assert [n.op for n in verify(split.setup).nodes] == ["aten.permute.default", "aten.exp.default"]
    assert [n.op for n in verify(split.main).nodes] == ["aten.permute.default", "aten.mul.Tensor", "aten.mul.Tensor"]


def test_views_of_hoisted_values_are_made_each_time() -> None:
    b = Builder()
    x, w = b.input(f32(3, 2)), weight(b, 2, 3)
    turned = b("aten.permute.default", exp(b, w), (1, 0), to=f32(3, 2))
    split = hoist(b.graph(times(b, x, turned)), {1})
    assert split is not None
    assert [n.op for n in split.setup.nodes] == ["aten.exp.default"]
    assert [n.op for n in split.main.nodes] == ["aten.permute.default", "aten.mul.Tensor"]


def test_constants_are_made_each_time_unless_only_hoisted_nodes_read_them() -> None:
    full = ((3,), 1.0, Token("dtype", "f32"), STRIDED, CPU, False)
    b = Builder()
    x = b.input(f32(3))
    assert hoist(b.graph(times(b, x, b("aten.full.default", *full, to=f32(3)))), ()) is None
    b = Builder()
    x = b.input(f32(3))
    ones = b("aten.full.default", *full, to=f32(3))
    assert hoisted(b.graph(times(b, x, exp(b, ones)))) == ["aten.full.default", "aten.exp.default"]


def test_positions_are_computed_once() -> None:
    b = Builder()
    x = b.input(typed("i64", 3))
    args = (0, 3, 1, Token("dtype", "i64"), STRIDED, CPU, False)
    positions = b("aten.arange.start_step", *args, to=typed("i64", 3))
    assert hoisted(b.graph(b("aten.mul.Tensor", x, positions, to=typed("i64", 3)))) == ["aten.arange.start_step"]


def test_unused_results_of_a_hoisted_node_stay_unused() -> None:
    b = Builder()
    x, w = b.input(f32(2)), weight(b, 2, 3)
    largest, _ = b.many("aten.max.dim", w, 1, False, to=(f32(2), None))
    assert largest is not None
    split = hoist(b.graph(times(b, x, largest)), {1})
    assert split is not None
    assert split.setup.nodes[0].results[1] is None


def test_both_graphs_together_compute_what_the_whole_did() -> None:
    b = Builder()
    x, w, v = b.input(f32(2, 3)), weight(b, 3, 2), weight(b, 2, 3)
    turned = b("aten.permute.default", w, (1, 0), to=f32(2, 3))
    scale = times(b, exp(b, turned), v)
    row = b("aten.select.int", scale, 0, 1, to=f32(3))
    both = times(b, times(b, x, scale), row)
    graph = b.graph(both, times(b, both, turned), scale)
    split = hoist(graph, {1, 2})
    assert split is not None
    inputs = [torch.randn(2, 3), torch.randn(3, 2), torch.randn(2, 3)]
    made = run(verify(split.setup), inputs)
    for actual, wanted in zip(run(verify(split.main), [*inputs, *made]), run(graph, inputs), strict=True):
        assert torch.equal(actual, wanted)
