"""Canonical views: complete, non-negative arguments, few ops."""

from __future__ import annotations

import pytest

from fairlead.ir import Argument, Dim, DimExpr, TensorType
from fairlead.passes import canonicalize

from ._build import Builder, f32, nodes_of, rewritten, text, typed


def canonical(op: str, source: TensorType, *args: Argument, to: TensorType) -> str:
    """The canonical form of ``relu(op(x))``, without the relu."""
    b = Builder()
    graph = b.graph(b("aten.relu.default", b(op, b.input(source), *args, to=to), to=to))
    return "\n".join(nodes_of(canonicalize(graph)).splitlines()[:-2])


def test_a_view_names_its_whole_shape() -> None:
    b = Builder()
    x = b.input(f32("b", 4), name="x")
    flat = b("aten.view.default", x, (-1,), to=f32("4*b"))
    graph = b.graph(b("aten.relu.default", flat, to=f32("4*b")))
    assert rewritten(canonicalize, graph) == text(
        """
        symbol b in [2, inf] from in0.dim0
        graph @g inference {
          in %0 user "x" : f32[b, 4]
          %3 = aten.view.default(%0, [<4*b>]) : f32[4*b]
          %2 = aten.relu.default(%3) : f32[4*b]
          out %2 user
        }
        """
    )


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aten.view.default", ((3, -1),)),
        ("aten._unsafe_view.default", ((3, 4),)),
        ("aten.reshape.default", ((-1, 4),)),
        ("aten.flatten.using_ints", (0, -1)),
    ],
)
def test_whatever_reshapes_is_a_view(op: str, args: tuple[Argument, ...]) -> None:
    assert canonical(op, f32(2, 6), *args, to=f32(3, 4)) == "%3 = aten.view.default(%0, [3, 4]) : f32[3, 4]"


def test_a_view_of_the_same_shape_is_the_value_itself() -> None:
    assert canonical("aten.view.default", f32(2, "b"), (2, -1), to=f32(2, "b")) == ""


def test_expand_names_its_whole_shape() -> None:
    wanted = "%3 = aten.expand.default(%0, [3, <b>, 4], false) : f32[3, b, 4]"
    assert canonical("aten.expand.default", f32("b", 1), (3, -1, 4), False, to=f32(3, "b", 4)) == wanted


def test_expand_to_the_same_shape_is_the_value_itself() -> None:
    assert canonical("aten.expand.default", f32(2, 3), (-1, 3), False, to=f32(2, 3)) == ""


@pytest.mark.parametrize(
    ("op", "args", "shape", "order"),
    [
        ("aten.t.default", (), (4, 3), "1, 0"),
        ("aten.transpose.int", (-1, 0), (4, 3), "1, 0"),
        ("aten.transpose.int", (1, -3), (3, 2, 4), "1, 0, 2"),
        ("aten.permute.default", ((-1, 0, 1),), (4, 2, 3), "2, 0, 1"),
    ],
)
def test_transposes_are_permutations(op: str, args: tuple[Argument, ...], shape: tuple[int, ...], order: str) -> None:
    source = f32(2, 3, 4) if len(shape) == 3 else f32(3, 4)
    wanted = f"%3 = aten.permute.default(%0, [{order}]) : f32[{', '.join(map(str, shape))}]"
    assert canonical(op, source, *args, to=f32(*shape)) == wanted


@pytest.mark.parametrize(
    ("op", "source", "args"),
    [
        ("aten.permute.default", f32(2, 3), ((0, -1),)),
        ("aten.t.default", f32(3), ()),
        ("aten.t.default", f32(), ()),
        ("aten.transpose.int", f32(), (0, -1)),
        ("aten.transpose.int", f32(2, 3), (-1, 1)),
    ],
)
def test_a_permutation_that_moves_nothing_is_gone(op: str, source: TensorType, args: tuple[Argument, ...]) -> None:
    assert canonical(op, source, *args, to=source) == ""


@pytest.mark.parametrize(
    ("op", "args", "shape", "gone"),
    [
        ("aten.squeeze.default", (), (2, "b"), "0, 2"),
        ("aten.squeeze.dim", (-2,), (1, 2, "b"), "2"),
        ("aten.squeeze.dim", (0,), (2, 1, "b"), "0"),
        ("aten.squeeze.dims", ((2, -4, 1),), (2, "b"), "0, 2"),
    ],
)
def test_squeezes_name_the_dimensions_that_go(
    op: str, args: tuple[Argument, ...], shape: tuple[Dim, ...], gone: str
) -> None:
    wanted = f"%3 = aten.squeeze.dims(%0, [{gone}]) : f32[{', '.join(map(str, shape))}]"
    assert canonical(op, f32(1, 2, 1, "b"), *args, to=f32(*shape)) == wanted


@pytest.mark.parametrize(
    ("op", "source", "args"),
    [
        ("aten.squeeze.default", f32(2, "b"), ()),
        ("aten.squeeze.dim", f32(2, 3), (1,)),
        ("aten.squeeze.dim", f32(), (-1,)),
        ("aten.squeeze.dims", f32(), ((0,),)),
        ("aten.squeeze.dims", f32(1, 2), ((),)),
    ],
)
def test_a_squeeze_of_nothing_is_gone(op: str, source: TensorType, args: tuple[Argument, ...]) -> None:
    assert canonical(op, source, *args, to=source) == ""


@pytest.mark.parametrize(("dim", "shape", "at"), [(-1, (2, 3, 1), 2), (-3, (1, 2, 3), 0), (1, (2, 1, 3), 1)])
def test_unsqueeze_counts_from_the_front(dim: int, shape: tuple[int, ...], at: int) -> None:
    wanted = f"aten.unsqueeze.default(%0, {at}) : f32[{', '.join(map(str, shape))}]"
    assert canonical("aten.unsqueeze.default", f32(2, 3), dim, to=f32(*shape)).endswith(wanted)


@pytest.mark.parametrize(
    ("given", "size", "wanted"),
    [
        ((1, 2**63 - 1, 1), 9, "1, 10, 1"),
        ((None, 4, 1), 4, "0, 4, 1"),
        ((None, None, 3), 4, "0, 10, 3"),
        ((-3, None, 1), 3, "7, 10, 1"),
        ((0, -1, 1), 9, "0, 9, 1"),
        ((-99, 99, 2), 5, "0, 10, 2"),
        ((8, 12, 1), 2, "8, 10, 1"),
        ((12, 20, 1), 0, "10, 10, 1"),
        ((6, 2, 1), 0, "6, 2, 1"),
    ],
)
def test_a_slice_has_bounds_within_the_size(given: tuple[Argument, ...], size: int, wanted: str) -> None:
    result = canonical("aten.slice.Tensor", f32(2, 10), -1, *given, to=f32(2, size))
    assert result.endswith(f"aten.slice.Tensor(%0, 1, {wanted}) : f32[2, {size}]")


@pytest.mark.parametrize(
    ("given", "size", "wanted"),
    [
        ((1, 2**63 - 1, 1), "b - 1", "1, <b>, 1"),
        ((-1, 2**63 - 1, 1), 1, "-1, <b>, 1"),
        ((0, -2, 1), "b - 2", "0, -2, 1"),
        ((None, None, 2), "((b + 1)//2)", "0, <b>, 2"),
        ((2, 100, 1), "min(100, b) - 2", "2, 100, 1"),
        ((0, DimExpr("b - 1"), 1), "b - 1", "0, <b - 1>, 1"),
    ],
)
def test_the_bounds_of_a_slice_of_a_symbolic_size_keep_their_meaning(
    given: tuple[Argument, ...], size: Dim, wanted: str
) -> None:
    result = canonical("aten.slice.Tensor", f32("b", 2), 0, *given, to=f32(size, 2))
    assert result.endswith(f"aten.slice.Tensor(%0, 0, {wanted}) : f32[{size}, 2]")


@pytest.mark.parametrize("bounds", [(0, 2**63 - 1), (None, None), (0, 3), (-3, 7), (-9, 3)])
def test_a_slice_of_everything_is_the_value_itself(bounds: tuple[Argument, ...]) -> None:
    assert canonical("aten.slice.Tensor", f32(3, 2), 0, *bounds, 1, to=f32(3, 2)) == ""


def test_a_slice_of_everything_is_the_value_itself_for_a_symbolic_size() -> None:
    assert canonical("aten.slice.Tensor", f32("b"), 0, 0, 2**63 - 1, 1, to=f32("b")) == ""


@pytest.mark.parametrize(
    ("source", "args", "wanted"),
    [
        (f32(2, 3), (-1, -1), "1, 2) : f32[2]"),
        (f32(2, "b"), (1, -1), "1, <b - 1>) : f32[2]"),
        (f32(2, 3), (0, 1), "0, 1) : f32[3]"),
        (f32(2, "b"), (-1, DimExpr("b - 2")), "1, <b - 2>) : f32[2]"),
    ],
)
def test_select_counts_from_the_front(source: TensorType, args: tuple[Argument, ...], wanted: str) -> None:
    shape = f32(3) if args[0] == 0 else f32(2)
    assert canonical("aten.select.int", source, *args, to=shape).endswith(f"aten.select.int(%0, {wanted}")


@pytest.mark.parametrize(
    ("op", "args", "wanted"),
    [
        ("aten.split_with_sizes.default", ((1, 2), -1), "[1, 2], 1"),
        ("aten.split_with_sizes.default", ((1, 2), 1), "[1, 2], 1"),
    ],
)
def test_splits_count_from_the_front(op: str, args: tuple[Argument, ...], wanted: str) -> None:
    b = Builder()
    first, second = b.many(op, b.input(f32(2, 3)), *args, to=(f32(2, 1), f32(2, 2)))
    assert f"{op}(%0, {wanted}) : f32[2, 1], f32[2, 2]" in nodes_of(canonicalize(b.graph(first, second)))


def test_a_split_whose_results_are_not_all_used_counts_from_the_front_too() -> None:
    b = Builder()
    _, second = b.many("aten.split_with_sizes.default", b.input(f32(2, 3)), (1, 2), -1, to=(None, f32(2, 2)))
    assert nodes_of(canonicalize(b.graph(second))) == text(
        """
        _, %1 = aten.split_with_sizes.default(%0, [1, 2], 1) : _, f32[2, 2]
        out %1 user
        """
    )


def test_unbind_counts_from_the_front() -> None:
    b = Builder()
    _, second = b.many("aten.unbind.int", b.input(f32(3, 2)), -1, to=(None, f32(3)))
    assert "aten.unbind.int(%0, 1) : _, f32[3]" in nodes_of(canonicalize(b.graph(second)))


def test_aliases_of_a_value_are_the_value() -> None:
    b = Builder()
    x = b.input(f32(2))
    y = x
    for op in ("aten.alias.default", "aten.detach.default", "aten.lift_fresh.default", "aten.lift.default"):
        y = b(op, y, to=f32(2))
    graph = b.graph(b("aten.relu.default", y, to=f32(2)))
    assert nodes_of(canonicalize(graph)) == "%5 = aten.relu.default(%0) : f32[2]\nout %5 user"


def test_views_of_views_refer_to_what_is_left() -> None:
    b = Builder()
    x = b.input(typed("bool", 2, 3))
    same = b("aten.view.default", x, (2, 3), to=typed("bool", 2, 3))
    turned = b("aten.t.default", same, to=typed("bool", 3, 2))
    graph = b.graph(b("aten.view.default", turned, (-1,), to=typed("bool", 6)))
    assert nodes_of(canonicalize(graph)) == text(
        """
        %4 = aten.permute.default(%0, [1, 0]) : bool[3, 2]
        %5 = aten.view.default(%4, [6]) : bool[6]
        out %5 user
        """
    )


def test_permutations_that_follow_each_other_are_one() -> None:
    b = Builder()
    first = b("aten.permute.default", b.input(f32(2, 3, 4)), (0, 2, 1), to=f32(2, 4, 3, strides=(12, 1, 4)))
    second = b("aten.permute.default", first, (1, 0, 2), to=f32(4, 2, 3))
    third = b("aten.permute.default", second, (2, 0, 1), to=f32(3, 4, 2))
    assert nodes_of(canonicalize(b.graph(third))) == text(
        """
        %5 = aten.permute.default(%0, [1, 2, 0]) : f32[3, 4, 2]
        out %5 user
        """
    )


def test_a_permutation_that_others_read_too_stays_for_them() -> None:
    b = Builder()
    first = b("aten.t.default", b.input(f32(2, 3)), to=f32(3, 2))
    relu = b("aten.relu.default", first, to=f32(3, 2))
    assert nodes_of(canonicalize(b.graph(b("aten.t.default", first, to=f32(2, 3)), relu))) == text(
        """
        %4 = aten.permute.default(%0, [1, 0]) : f32[3, 2]
        %2 = aten.relu.default(%4) : f32[3, 2]
        out %0 user
        out %2 user
        """
    )


def test_permutations_through_a_copy_that_is_dropped_are_one_too() -> None:
    b = Builder()
    first = b("aten.t.default", b.input(f32(2, 3)), to=f32(3, 2))
    second = b("aten.t.default", b("aten.clone.default", first, None, to=f32(3, 2)), to=f32(2, 3))
    graph = b.graph(b("aten.relu.default", second, to=f32(2, 3)))
    assert nodes_of(canonicalize(graph)) == "%4 = aten.relu.default(%0) : f32[2, 3]\nout %4 user"
