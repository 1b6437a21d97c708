"""Operands that cannot go together: the error names the op, the operands and the rule."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.errors import VerificationError

from ._notation import inferred

REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("aten.mm.default", ("f32[2, 3]", "f32[4, 5]"), "the inner sizes differ: 3 and 4"),
    ("aten.mm.default", ("f32[2, 3]", "f64[3, 5]"), "the operands are f32 and f64"),
    ("aten.mm.default", ("f32[2, 3]",), "it takes 2 arguments (self, mat2), not 1"),
    ("aten.mm.default", ("f32[2, 3]", 2.5), "mat2 is not a tensor"),
    ("aten.add.Tensor", ("f32[2, 3]", "f32[4]", 1), "the shapes [2, 3], [4] do not broadcast"),
    ("aten.add.Tensor", (1, 2, 1), "it has no tensor among its operands"),
    ("aten.mul.Tensor", ("u16[2]", "i32[2]"), "u16 and i32 have no common dtype"),
    ("aten.mul.Tensor", ("f8e5m2[2]", "f32[2]"), "f8e5m2 and f32 have no common dtype"),
    ("aten.view.default", ("f32[2, 3]", [4, 2]), "the numbers of elements of [2, 3] and [4, 2] differ: 6 and 8"),
    ("aten.view.default", ("f32[2, 3]", [-1, -1]), "more than one size is left open"),
    ("aten.view.default", ("f32[0]", [-1, 0]), "it divides a size by zero"),
    ("aten.permute.default", ("f32[2, 3]", [0, 0]), "a dimension is listed twice in [0, 0]"),
    ("aten.permute.default", ("f32[2, 3]", [0, 2]), "there is no dimension 2 in 2 dimensions"),
    ("aten.permute.default", ("f32[2, 3]", [True]), "dims is not a list, each an integer"),
    ("aten.expand.default", ("f32[2, 3]", [4, 3], False), "[2, 3] does not expand to [4, 3]"),
    ("aten.select.int", ("f32[2]", 0, 2), "the index 2 is out of the size 2"),
    ("aten.slice.Tensor", ("f32[2]", 0, 0, 2, 0), "the step is 0"),
    ("aten.split_with_sizes.default", ("f32[5]", [2, 2], 0), "the size and the sum of the parts differ: 5 and 4"),
    ("aten.cat.default", (["f32[2, 3]", "f32[2, 4]"], 0), "the sizes of the parts differ: 3 and 4"),
    ("aten.unbind.int", ("f32[b]", 0), "how many results there are depends on b"),
    ("aten.mean.dim", ("i64[2]", None, False, None), "there is no mean of i64"),
    (
        "aten.convolution.default",
        ("f32[1, 3, 5]", "f32[4, 2, 3]", None, [1], [0], [1], False, [0], 1),
        "the channels of input and weight differ: 3 and 2",
    ),
    (
        "aten.convolution.default",
        ("f32[1, 3, 2]", "f32[4, 3, 5]", None, [1], [0], [1], False, [0], 1),
        "the kernel is larger than the padded input",
    ),
    ("aten.linear.default", ("f32[2, 3]", "f32[5, 4]", None), "the inner sizes differ: 3 and 4"),
    ("aten.native_layer_norm.default", ("f32[2, 3]", [4], None, None, 1e-5), "normalized_shape differ: 3 and 4"),
    ("aten.arange.start_step", (0, 5, 0, None, None, None, None), "the step is zero"),
    ("aten.full.default", ([-1], 0, None, None, None, None), "[-1] has a negative size"),
    ("aten._fft_r2c.default", ("c64[2]", [0], 0, True), "c64 is not real and floating"),
    ("aten.index.Tensor", ("f32[2]", ["i64[1]", "i64[1]"]), "2 indices for 1 dimensions"),
    ("aten.scatter_add.default", ("f32[2]", 0, "i64[2]", "f64[2]"), "f64 is written to f32"),
    ("aten._to_copy.default", ("f32[2]", "#f7", None, None, None, False, None), "dtype is not a dtype or none"),
]


@pytest.mark.parametrize(("op", "args", "why"), REFUSED, ids=lambda part: part if isinstance(part, str) else None)
def test_operands_that_cannot_go_together_are_refused(op: str, args: tuple[Any, ...], why: str) -> None:
    with pytest.raises(VerificationError) as caught:
        inferred(op, *args)
    assert why in caught.value.what


def test_the_message_shows_op_operands_and_rule() -> None:
    with pytest.raises(VerificationError) as caught:
        inferred("aten.bmm.default", "f32[b, 2, 3]", "f32[b, 4, 5]")
    assert str(caught.value) == (
        "FL603: aten.bmm.default(f32[b, 2, 3], f32[b, 4, 5]) has no result: the inner sizes differ: 3 and 4\n"
        "  from: the dtype and shape rule of aten.bmm.default\n"
        "  next: give it operands that go together, or fix the pass or the writer that made the node"
    )
