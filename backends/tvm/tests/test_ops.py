"""A part of the table of cases, compiled by TVM against eager torch; the conformance suite has the breadth."""

from __future__ import annotations

import pytest
import torch

from fairlead import ir
from fairlead_onnx.testing import OpCase, check, op_cases
from fairlead_tvm import TVMOptions, backend

_SAMPLE = [case for case in op_cases() if case.index % 24 == 5]


@pytest.mark.parametrize("case", _SAMPLE, ids=str)
def test_an_op_agrees_with_eager_or_is_declined_with_a_reason(case: OpCase) -> None:
    assert all(reason for reason in check([case], backend).values())


def test_the_place_of_an_extreme_is_the_first_of_equals_and_of_nans() -> None:
    b = ir.Builder("g")
    x = b.input("f32[3, 20]", "x")
    for out in (*b.ops("aten.max.dim", x, 1, False), b.op("aten.argmin.default", x, None, False)):
        b.output(out)
    x_ = torch.randint(-3, 3, (3, 20)).float()
    x_[1, 7] = x_[1, 11] = float("nan")
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})([x_])
    torch.testing.assert_close(found, [*x_.max(1), x_.argmin()], rtol=0, atol=0, equal_nan=True)


def test_a_running_sum_of_float32_is_added_up_in_float64() -> None:
    b = ir.Builder("g")
    b.output(b.op("aten.cumsum.default", b.input("f32[3, 5000]", "x"), 1))
    x = torch.randn(3, 5000)
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})([x])
    torch.testing.assert_close(found, [x.cumsum(1)], rtol=0, atol=0)


def test_rows_are_added_at_places_that_are_the_same_one_after_the_other() -> None:
    b = ir.Builder("g")
    x, i, v = b.input("f32[7, 100]", "x"), b.input("i64[50]", "i"), b.input("f32[50, 100]", "v")
    b.output(b.op("aten.index_put.default", x, (i,), v, True))
    given = torch.randn(7, 100), torch.randint(-7, 7, (50,)), torch.randn(50, 100)
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})(list(given))
    torch.testing.assert_close(found, [given[0].index_put((given[1],), given[2], accumulate=True)])


def test_what_is_written_at_places_apart_lies_as_torch_has_it() -> None:
    b = ir.Builder("g")
    x, i, j, v = (b.input(kind) for kind in ("f32[5, 3, 6, 4]", "i64[2]", "i64[2]", "f32[2, 3, 4]"))
    b.output(b.op("aten.index_put.default", x, (i, None, j), v, False))
    given = torch.randn(5, 3, 6, 4), torch.tensor([0, 4]), torch.tensor([-1, 2]), torch.randn(2, 3, 4)
    expected = torch.ops.aten.index_put(given[0], [given[1], None, given[2]], given[3])
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})(list(given))
    torch.testing.assert_close(found, [expected], rtol=0, atol=0)


def test_a_place_to_write_that_is_out_of_range_is_an_error() -> None:
    b = ir.Builder("g")
    x, i, v = b.input("f32[4]", "x"), b.input("i64[1]", "i"), b.input("f32[1]", "v")
    b.output(b.op("aten.index_put.default", x, (i,), v, False))
    run = backend.compile(b.graph(), TVMOptions(threads="one"), {})
    with pytest.raises(IndexError, match=r"out of range for 4 elements in aten\.index_put\.default"):
        run([torch.randn(4), torch.tensor([4]), torch.randn(1)])


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_many_parts_are_joined_one_after_the_other(dim: int) -> None:
    sizes, b = (1, 20, 3, 0, 33), ir.Builder("g")
    parts = [torch.randn([n if d == dim else 5 for d in range(3)]) for n in sizes]
    given = [b.input(f"f32[{', '.join(map(str, p.shape))}]") for p in parts]
    b.output(b.op("aten.cat.default", tuple(given), dim))
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})(parts)
    torch.testing.assert_close(found, [torch.cat(parts, dim)], rtol=0, atol=0)


@pytest.mark.parametrize("dim", [0, 1])
def test_what_a_softmax_leaves_out_by_far_is_zero(dim: int) -> None:
    """Products of 4e-44, which eager has for a score less by 100, take processors several times as long as others."""
    b = ir.Builder("g")
    x = b.input("f32[3, 20]", "x")
    b.output(b.op("aten._softmax.default", x, dim, False))
    b.output(b.op("aten._log_softmax.default", x, dim, False))
    given = torch.randn(3, 20)
    given[1] -= 100
    given[:, 4] -= 100
    given[0, 7] = float("-inf")
    found, logarithms = backend.compile(b.graph(), TVMOptions(threads="one"), {})([given])
    torch.testing.assert_close(found, given.softmax(dim))
    torch.testing.assert_close(logarithms, given.log_softmax(dim))
    assert ((found == 0) | (found > torch.finfo(torch.float32).tiny)).all()
    assert (found[:, 4] == 0).all() if dim else (found[1] == 0).any()


def test_an_attention_leaves_out_by_far_what_its_mask_takes_100_from() -> None:
    b = ir.Builder("g")
    query, key, value, mask = (
        b.input(k) for k in ("f32[1, 2, 5, 8]", "f32[1, 2, 6, 8]", "f32[1, 2, 6, 8]", "f32[5, 6]")
    )
    given = [torch.randn(1, 2, n, 8) for n in (5, 6, 6)] + [torch.zeros(5, 6)]
    given[3][:, ::2] = -100
    b.output(*b.ops("nn.scaled_dot_product_attention", query, key, value, mask, 0.0, False, 0.3)[:1])
    found = backend.compile(b.graph(), TVMOptions(threads="one"), {})(given)
    expected = torch.nn.functional.scaled_dot_product_attention(*given[:3], attn_mask=given[3], scale=0.3)
    torch.testing.assert_close(found, [expected])
