"""Which copies stay: those that keep an output apart from another value, and those whose layout somebody reads."""

from __future__ import annotations

import pytest
import torch

from fairlead.ir import Argument, DType, Graph, Input, Kind, Node, Output, Role, TensorType, Token, Value
from fairlead.passes import canonicalize
from fairlead.passes._memory import seen_by_outputs

from ._build import Builder, f32, nodes_of, text, typed


def canonical(graph: Graph) -> str:
    return nodes_of(canonicalize(graph))


def copy(b: Builder, x: Value) -> Value:
    return b("aten.clone.default", x, None, to=x.tensor)


def relu(b: Builder, x: Value) -> Value:
    return b("aten.relu.default", x, to=x.tensor)


def test_a_copy_that_is_an_output_stays() -> None:
    b = Builder()
    assert canonical(b.graph(copy(b, b.input(f32(2))))) == "%1 = aten.clone.default(%0, none) : f32[2]\nout %1 user"


def test_a_copy_that_only_nodes_read_is_gone() -> None:
    b = Builder()
    assert canonical(b.graph(relu(b, copy(b, b.input(f32(2)))))) == "%2 = aten.relu.default(%0) : f32[2]\nout %2 user"


def test_a_copy_that_an_output_is_a_view_of_stays() -> None:
    b = Builder()
    kept = copy(b, b.input(f32(2, 3)))
    turned = b("aten.t.default", kept, to=f32(3, 2))
    row = b("aten.select.int", turned, 0, 1, to=f32(2))
    assert canonical(b.graph(row)) == text(
        """
        %1 = aten.clone.default(%0, none) : f32[2, 3]
        %4 = aten.permute.default(%1, [1, 0]) : f32[3, 2]
        %3 = aten.select.int(%4, 0, 1) : f32[2]
        out %3 user
        """
    )


def test_a_copy_that_one_result_of_a_split_is_a_view_of_stays() -> None:
    b = Builder()
    kept = copy(b, b.input(f32(3)))
    first, second = b.many("aten.split_with_sizes.default", kept, (1, 2), 0, to=(f32(1), f32(2)))
    assert first is not None
    assert second is not None
    assert "aten.clone.default" in canonical(b.graph(relu(b, first), second))


def test_copies_of_one_value_are_outputs_of_their_own() -> None:
    b = Builder()
    x = b.input(f32(2))
    assert canonical(b.graph(copy(b, x), copy(b, x), x)) == text(
        """
        %1 = aten.clone.default(%0, none) : f32[2]
        %2 = aten.clone.default(%0, none) : f32[2]
        out %1 user
        out %2 user
        out %0 user
        """
    )


def test_an_output_that_is_returned_twice_stays_one() -> None:
    b = Builder()
    y = copy(b, b.input(f32(2)))
    assert canonical(b.graph(y, y)) == "%1 = aten.clone.default(%0, none) : f32[2]\nout %1 user\nout %1 user"


def test_a_copy_of_a_copy_is_one() -> None:
    b = Builder()
    graph = b.graph(copy(b, copy(b, b.input(f32(2)))))
    assert canonical(graph) == "%1 = aten.clone.default(%0, none) : f32[2]\nout %1 user"


@pytest.mark.parametrize(
    ("op", "args", "to"),
    [
        ("aten.as_strided.default", ((2,), (2,), 0), f32(2)),
        ("aten.view_as_complex.default", (), typed("c64", 2)),
        ("aten.view.dtype", (Token("dtype", "i32"),), typed("i32", 2, 2)),
        ("vendor.read_rows.default", (), f32(2)),
    ],
)
def test_a_copy_that_an_op_reads_by_its_strides_stays(op: str, args: tuple[Argument, ...], to: TensorType) -> None:
    b = Builder()
    read = b(op, copy(b, b.input(f32(2, 2))), *args, to=to)
    assert "aten.clone.default" in canonical(b.graph(b("aten.neg.default", read, to=to)))


@pytest.mark.parametrize(
    ("op", "args", "to"),
    [
        ("aten.unfold.default", (0, 2, 1), f32(3, 2)),
        ("aten.view_as_real.default", (), f32(4, 2)),
        ("aten.as_strided.default", ((2,), (2,), 0), f32(2)),
    ],
)
def test_a_copy_that_another_kind_of_view_shows_stays(op: str, args: tuple[Argument, ...], to: TensorType) -> None:
    b = Builder()
    source = typed("c64", 4) if op == "aten.view_as_real.default" else f32(4)
    assert "aten.clone.default" in canonical(b.graph(b(op, copy(b, b.input(source)), *args, to=to)))


def test_every_aten_op_that_returns_a_view_is_known_as_one() -> None:
    by_another_name = {
        "aten._conj.default",  # as the physical one, or not captured at all
        "aten._neg_view.default",
        "aten._reshape_alias.default",
        "aten.alias.default",
        "aten.detach.default",
        "aten.lift_fresh.default",
        "aten.split.Tensor",
        "aten.squeeze.default",
        "aten.squeeze.dim",
        "aten.t.default",
        "aten.transpose.int",
    }
    assert {op for op in _views_of_torch() if not _shares_memory(op)} == by_another_name


def _shares_memory(op: str) -> bool:
    x, y = Value(0, f32(2)), Value(1, f32(2))
    return 0 in seen_by_outputs(Graph("g", Kind.inference, (Input(x),), (Node(op, (x,), (y,)),), (Output(y),)))


def _views_of_torch() -> set[str]:
    """The ops of dense tensors that return an alias of what they are given, but those that are made of others."""
    rare = ("nested", "indices", "values", "sparse", "dual", "primal", "_test", "slice_inverse")
    found = set()
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        if namespace != "aten" or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
            continue
        packet, _, overload = rest.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
        if op is None or op._schema.is_mutable or any(word in name for word in rare):
            continue
        if any(r.alias_info is not None for r in op._schema.returns):
            found.add(str(op))
    return found


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aten._to_copy.default", (Token("dtype", "f32"), None, None, None, False, None)),
        ("aten._to_copy.default", (None, None, None, None, False, Token("memory_format", "contiguous_format"))),
        ("prims.convert_element_type.default", (Token("dtype", "f32"),)),
        ("aten.lift_fresh_copy.default", ()),
        ("aten.pow.Tensor_Scalar", (1,)),
        ("aten.pow.Tensor_Scalar", (1.0,)),
        ("aten.contiguous.default", (Token("memory_format", "contiguous_format"),)),
    ],
)
def test_what_returns_new_memory_is_a_copy(op: str, args: tuple[Argument, ...]) -> None:
    b = Builder()
    x = b.input(f32(2))
    y, z = b(op, x, *args, to=f32(2)), b(op, x, *args, to=f32(2))
    assert canonical(b.graph(y, relu(b, z))) == text(
        """
        %4 = aten.clone.default(%0, none) : f32[2]
        %3 = aten.relu.default(%0) : f32[2]
        out %4 user
        out %3 user
        """
    )


def test_a_conversion_says_no_more_than_the_dtype() -> None:
    b = Builder()
    x = b.input(f32(2))
    layout, last = Token("layout", "strided"), Token("memory_format", "preserve_format")
    half = b("aten._to_copy.default", x, Token("dtype", "f16"), layout, None, None, True, last, to=typed("f16", 2))
    back = b("prims.convert_element_type.default", half, Token("dtype", "f32"), to=f32(2))
    assert canonical(b.graph(back)) == text(
        """
        %3 = aten._to_copy.default(%0, #dtype<f16>, none, none, none, false, none) : f16[2]
        %4 = aten._to_copy.default(%3, #dtype<f32>, none, none, none, false, none) : f32[2]
        out %4 user
        """
    )


def test_a_conversion_names_the_device_where_it_changes() -> None:
    b = Builder()
    there = TensorType(DType.f32, (2,), None, "cuda:0")
    args = (None, None, Token("device", "cuda"), None, False, None)
    moved = b("aten._to_copy.default", b.input(f32(2)), *args, to=there)
    wanted = "aten._to_copy.default(%0, #dtype<f32>, none, #device<cuda:0>, none, false, none) : f32[2] @cuda:0"
    assert wanted in canonical(b.graph(moved))


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (f32(2, 3), "%3 = aten.clone.default(%1, none) : f32[2, 3]"),
        (
            f32(3),
            """
            %3 = aten.expand.default(%1, [2, 3], false) : f32[2, 3]
            %4 = aten.clone.default(%3, none) : f32[2, 3]
            """,
        ),
        (
            typed("i64", 2, 1),
            """
            %3 = aten._to_copy.default(%1, #dtype<f32>, none, none, none, false, none) : f32[2, 1]
            %4 = aten.expand.default(%3, [2, 3], false) : f32[2, 3]
            %5 = aten.clone.default(%4, none) : f32[2, 3]
            """,
        ),
    ],
)
def test_what_is_copied_over_a_tensor_takes_its_shape_and_dtype(source: TensorType, lines: str) -> None:
    b = Builder()
    target, value = b.input(f32(2, 3)), b.input(source)
    found = canonical(b.graph(b("aten.copy.default", target, value, False, to=f32(2, 3))))
    assert found.splitlines()[:-1] == text(lines).splitlines()


def test_cat_leaves_out_legacy_empty_tensors() -> None:
    b = Builder()
    empty, x, y = b.input(f32(0)), b.input(f32(2, 3)), b.input(f32(2, 4))
    graph = b.graph(b("aten.cat.default", (empty, x, empty, y), -1, to=f32(2, 7)))
    assert canonical(graph) == "%4 = aten.cat.default([%1, %2], 1) : f32[2, 7]\nout %4 user"


def test_cat_keeps_empty_tensors_where_all_have_one_dimension() -> None:
    b = Builder()
    graph = b.graph(b("aten.cat.default", (b.input(f32(0)), b.input(f32(3))), 0, to=f32(3)))
    assert canonical(graph) == "%2 = aten.cat.default([%0, %1], 0) : f32[3]\nout %2 user"


def test_cat_keeps_the_dtype_that_an_empty_tensor_gave_it() -> None:
    b = Builder()
    empty, x, y = b.input(f32(0)), b.input(typed("i64", 2, 1)), b.input(typed("i64", 2, 1))
    assert canonical(b.graph(b("aten.cat.default", (empty, x, y), 1, to=f32(2, 2)))) == text(
        """
        %4 = aten._to_copy.default(%1, #dtype<f32>, none, none, none, false, none) : f32[2, 1]
        %5 = aten.cat.default([%4, %2], 1) : f32[2, 2]
        out %5 user
        """
    )


def test_cat_of_one_tensor_is_a_copy() -> None:
    b = Builder()
    x, empty = b.input(f32(2, 3)), b.input(f32(0))
    y = b("aten.cat.default", (x,), 0, to=f32(2, 3))
    z = b("aten.cat.default", (empty, x), 0, to=f32(2, 3))
    assert canonical(b.graph(y, relu(b, z))) == text(
        """
        %5 = aten.clone.default(%0, none) : f32[2, 3]
        %4 = aten.relu.default(%0) : f32[2, 3]
        out %5 user
        out %4 user
        """
    )


def test_a_copy_of_what_nobody_else_gets_is_no_copy() -> None:
    b = Builder()
    y = relu(b, b.input(f32(2)))
    assert canonical(b.graph(copy(b, y))) == "%1 = aten.relu.default(%0) : f32[2]\nout %1 user"


def test_of_two_copies_that_outputs_are_one_is_the_value_itself() -> None:
    b = Builder()
    y = relu(b, b.input(f32(2)))
    assert canonical(b.graph(copy(b, y), copy(b, y))).count("aten.clone.default") == 1


def test_a_copy_stays_apart_from_an_output_that_is_a_view_of_its_source() -> None:
    b = Builder()
    y = relu(b, b.input(f32(2, 3)))
    view = b("aten.permute.default", y, (1, 0), to=f32(3, 2))
    assert "aten.clone.default" in canonical(b.graph(view, copy(b, y)))


def test_a_copy_that_is_saved_with_its_source_is_none() -> None:
    b = Builder(Kind.forward)
    y = relu(b, b.input(f32(2)))
    graph = b.graph(b("aten.exp.default", y, to=y.tensor), Output(y, Role.saved), Output(copy(b, y), Role.saved))
    assert "aten.clone.default" not in canonical(graph)


@pytest.mark.parametrize("visible", [True, False])
def test_what_is_saved_stays_apart_from_what_the_caller_gets(visible: bool) -> None:
    b = Builder(Kind.forward)
    y = relu(b, b.input(f32(2)))
    roles = (Role.user, Role.saved) if visible else (Role.saved, Role.user)
    graph = b.graph(*(Output(v, r) for v, r in zip((y, copy(b, y)), roles, strict=True)))
    assert "aten.clone.default" in canonical(graph)


def test_a_copy_of_a_number_from_another_device_moves_it() -> None:
    """``x[-1] = 9`` on CUDA copies a tensor of the CPU."""
    b = Builder()
    x = b.input(TensorType(DType.f32, (4,), device="cuda:0"))
    number = b.input(TensorType(DType.f32, ()))
    graph = b.graph(b("aten.copy.default", x, number, False, to=x.tensor))
    (cast, expand, *_) = canonicalize(graph).nodes
    assert (cast.op, cast.args[3]) == ("aten._to_copy.default", Token("device", "cuda:0"))
    assert {cast.result.tensor.device, expand.result.tensor.device} == {"cuda:0"}
