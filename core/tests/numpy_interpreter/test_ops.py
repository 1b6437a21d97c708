"""What ops mean where it is easy to get wrong, without torch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fairlead.errors import InterpretError
from fairlead.ir import Complex, DType, Token

from ._call import call

F32, I64, BOOL, C64 = np.float32, np.int64, np.bool_, np.complex64
nan, inf = np.nan, np.inf


def f(*numbers: float) -> Any:
    return np.array(numbers, F32)


def c(*numbers: complex) -> Any:
    return np.array(numbers, C64)


def i(*numbers: int) -> Any:
    return np.array(numbers, I64)


CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("aten.div.Tensor_mode", (i(-7, 7, -7, 7), i(2, -2, -2, 2), "floor"), i(-4, -4, 3, 3)),
    ("aten.div.Tensor_mode", (i(-7, 7, -7, 7), i(2, -2, -2, 2), "trunc"), i(-3, -3, 3, 3)),
    ("aten.div.Tensor_mode", (f(-7, 1, 6, 1), f(2, inf, 0.1, 0), "floor"), f(-4, 0, 59, inf)),
    ("aten.remainder.Tensor", (i(-7, 7, -7, 7), i(2, -2, -2, 2)), i(1, -1, -1, 1)),
    ("aten.remainder.Tensor", (f(-7, 7, 5), f(2, -2, inf)), f(1, -1, 5)),
    ("aten.fmod.Tensor", (i(-7, 7, -7, 7), i(2, -2, -2, 2)), i(-1, 1, -1, 1)),
    ("aten.maximum.default", (f(nan, 1, -0.0), f(1, nan, -1)), f(nan, nan, -0.0)),
    ("aten.fmax.default", (f(nan, 1, nan), f(1, nan, nan)), f(1, 1, nan)),
    ("aten.clamp.default", (f(nan, -5, 5), -1.0, 1.0), f(nan, -1, 1)),
    ("aten.clamp.default", (f(0.0,), 3.0, 1.0), f(1.0)),
    ("aten.relu.default", (f(-1, nan, 2),), f(0, nan, 2)),
    ("aten.sign.default", (f(nan, -3, 0.0),), f(0, -1, 0)),
    ("aten.neg.default", (f(0.0),), f(-0.0)),
    ("aten.round.default", (f(0.5, 1.5, -2.5),), f(0, 2, -2)),
    ("aten.pow.Tensor_Tensor", (i(2, -1, -1, 5, 3), i(-1, -3, -2, 0, 40)), i(0, -1, 1, 1, 3**40 - 2**64)),
    ("aten.add.Tensor", (np.array([127], np.int8), np.array([1], np.int8), 1), np.array([-128], np.int8)),
    ("aten.mul.Tensor", (i(2**62), 4), i(0)),
    ("aten.eq.Tensor", (f(0.1), 0.1), np.array([True])),
    ("aten.lt.Tensor", (i(2**53 + 1), f(2.0**53)[:0].sum() + i(2**53 + 2)), np.array([True])),
    ("aten.logical_not.default", (f(0, nan, 2),), np.array([True, False, False])),
    ("aten.bitwise_right_shift.Tensor", (i(-8, 8), i(1, 64)), i(-4, 0)),
    ("aten.where.self", (np.array([True, False]), f(1, 2), 7), f(1, 7)),
    ("aten.sum.dim_IntList", (np.full(3, 200, np.uint8), [0], False, None), np.array(600, I64)),
    ("aten.sum.dim_IntList", (np.zeros((0, 2), F32), [0], False, None), f(0, 0)),
    ("aten.mean.dim", (np.zeros((0, 2), F32), [0], False, None), f(nan, nan)),
    ("aten.var.correction", (f(1, 2, 3), [0], 1, False), np.array(1, F32)),
    ("aten.var.correction", (f(1), [0], 1, False), np.array(nan, F32)),
    ("aten.amax.default", (f(1, nan, 3), [0], False), np.array(nan, F32)),
    ("aten.argmax.default", (f(1, 3, 3), 0, False), np.array(1)),
    ("aten.argmax.default", (f(1, nan, 3), None, False), np.array(1)),
    ("aten.any.dims", (np.array([[True], [False]]), [], False), np.array([[True], [False]])),
    ("aten.all.dims", (np.zeros((0, 2), bool), [0], False), np.array([True, True])),
    ("aten.cumsum.default", (np.array([True, True]), 0, None), i(1, 2)),
    ("aten.logsumexp.default", (f(-inf, -inf), [0], False), np.array(-inf, F32)),
    ("aten.logsumexp.default", (c(1000, 1000 + 1j), [0], False), np.array(1000 + np.log(1 + np.exp(1j)), C64)),
    ("aten.logsumexp.default", (c(inf, 1 + 2j), [0], False), np.array(inf, C64)),
    ("aten.logcumsumexp.default", (c(-inf + 1j, -inf, 2, inf, inf), 0), c(-inf, -inf, 2, inf, inf)),
    ("aten._softmax.default", (f(1000, 1000), 0, False), f(0.5, 0.5)),
    ("aten._softmax.default", (f(-inf, -inf), 0, False), f(nan, nan)),
    ("aten.index.Tensor", (f(1, 2, 3), [i(-1, 0)]), f(3, 1)),
    ("aten.index.Tensor", (f(1, 2, 3), [np.array([True, False, True])]), f(1, 3)),
    ("aten.index_put.default", (f(0, 0), [i(1, 1)], f(2, 3), True), f(0, 5)),
    ("aten.gather.default", (f(1, 2, 3), 0, i(2, 2), False), f(3, 3)),
    ("aten.avg_pool2d.default", (f(1, 3).reshape(1, 1, 2), [1, 2], [], 0, False, True, None), f(2).reshape(1, 1, 1)),
    ("aten.scatter_reduce.two", (f(8, 8), 0, i(0, 0), f(1, 3), "mean", False), f(2, 8)),
    ("aten.scatter_reduce.two", (f(8, 8), 0, i(0, 0), f(1, 3), "amin", True), f(1, 8)),
    ("aten.embedding_dense_backward.default", (np.ones((3, 1), F32), i(0, 2, 0), 3, 2, False), f(2, 0, 0)[:, None]),
    ("aten.slice.Tensor", (f(1, 2, 3, 4), 0, 1, 2**62, 2), f(2, 4)),
    ("aten.constant_pad_nd.default", (f(1, 2, 3), [-1, 2], 9), f(2, 3, 9, 9)),
    ("aten.reflection_pad1d.default", (f(1, 2, 3)[None], [2, 1]), f(3, 2, 1, 2, 3, 2)[None]),
    ("aten.arange.start_step", (2.1, -2.9, -1.0, Token("dtype", "i64"), None, None, None), i(2, 1, 0, -1)),
    ("aten.arange.start_step", (2.1, -2.9, -1.0, Token("dtype", "i32"), None, None, None),
     np.array([2, 1, 0, -1, -2], np.int32)),
    ("aten.gather.default", (f(1, 2), 0, np.zeros((2, 0), I64), False), np.zeros((2, 0), F32)),
    ("aten.scatter_add.default", (f(1, 2), 0, np.zeros((2, 0), I64), np.zeros((2, 0), F32)), f(1, 2)),
    ("aten.scatter.src", (f(1, 2), 0, np.zeros((2, 0), I64), np.zeros((2, 0), F32)), f(1, 2)),
    ("aten._cdist_backward.default", (np.zeros((0, 3, 4), F32), np.ones((3, 5), F32), np.ones((0, 4, 5), F32), 2.0,
     np.zeros((0, 3, 4), F32)), np.zeros((3, 5), F32)),
    ("aten._cdist_backward.default", (np.ones((1, 1), F32), f(0.1, 1.0)[None], f(0.7, 1.1)[None], inf,
     np.array([[0.59999996]], F32)), f(-1, 0)[None]),
    ("aten.arange.start_step", (5, 0, -2, None, None, None, None), i(5, 3, 1)),
    ("aten.full.default", ([2], inf, None, None, None, None), f(inf, inf)),
    ("aten.full.default", ([], Complex(1.0, -2.0), None, None, None, None), np.array(1 - 2j, np.complex64)),
    ("aten.unfold.default", (i(1, 2, 3, 4), 0, 2, 2), i(1, 2, 3, 4).reshape(2, 2)),
    ("aten.searchsorted.Tensor", (f(1, 2, 2, 3), f(2, 9), False, True, None, None), i(3, 4)),
    ("aten.nonzero_static.default", (i(0, 3, 4), 3, -1), i(1, 2, -1)[:, None]),
    ("aten.avg_pool2d.default", (f(1, 2, 3, 4).reshape(1, 2, 2), [2, 2], [1, 1], [1, 1], False, False, None),
     f(1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4).reshape(1, 3, 3)),
    ("aten.histc.default", (f(0, 1, 1, 4), 2, 0, 2), f(1, 2)),
    ("aten.copysign.Tensor", (f(1, 2), f(-0.0, 3)), f(-1, 2)),
    ("aten.angle.default", (f(-1, 1, nan),), f(np.pi, 0, nan)),
    ("aten.digamma.default", (f(0.0, -0.0, 1),), f(-inf, inf, -0.5772157)),
    ("aten.polygamma.default", (2, f(-inf, inf, 1)), f(-inf, -0.0, -2.4041138)),
    ("aten.special_zeta.default", (f(2, 3, 3, 2), f(-0.5, -0.5, -3.25, -1e6 - 0.5)),
     f(8.934802, 0.4143983, -61.977606, 9.869603)),
    ("aten.special_zeta.default", (f(2, 2, inf, inf, inf), f(inf, -inf, 2, 1, 0.5)), f(0, inf, 0, 1, inf)),
    ("aten.lgamma.default", (f(0.0, -1.0, 3),), f(inf, inf, 0.6931472)),
    ("aten.erfinv.default", (f(-1, 0.5, 2),), f(-inf, 0.4769363, nan)),
    ("aten._int_mm.default", (np.full((1, 2), 99, np.int8), np.full((2, 1), 2, np.int8)),
     np.full((1, 1), 396, np.int32)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "args", "expected"), CASES, ids=[f"{n}-{c[0]}" for n, c in enumerate(CASES)])
def test_an_op_means(op: str, args: tuple[Any, ...], expected: Any) -> None:
    found = call(op, *args, gives=expected)
    assert found.dtype == expected.dtype
    exact = bool(np.all((expected == np.rint(expected)) | ~np.isfinite(expected)))
    np.testing.assert_allclose(found, expected, rtol=0 if exact else 1e-6)
    if expected.dtype.kind == "f":
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


def test_of_equal_extremes_the_first_is_named_and_of_running_ones_the_last() -> None:
    values, at = call("aten.max.dim", f(3, 1, 3), 0, False, gives=[np.array(0, F32), np.array(0)])
    assert (float(values), int(at)) == (3, 0)
    values, at = call("aten.cummax.default", f(1, nan, 3, 1), 0, gives=[f(0, 0, 0, 0), i(0, 0, 0, 0)])
    np.testing.assert_array_equal(values, f(1, nan, nan, nan))
    np.testing.assert_array_equal(at, i(0, 1, 1, 1))


def test_sorting_keeps_the_order_of_equals_and_puts_nan_last() -> None:
    values, at = call("aten.sort.default", f(2, nan, 1, 2), -1, True, gives=[f(0, 0, 0, 0), i(0, 0, 0, 0)])
    np.testing.assert_array_equal(values, f(nan, 2, 2, 1))
    np.testing.assert_array_equal(at, i(1, 0, 3, 2))


def test_a_rounding_of_quotients_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InterpretError, match="rounding_mode is 'up'"):
        call("aten.div.Tensor_mode", f(1.0), f(2.0), "up", gives=f(0.5))


def test_fractional_pooling_of_nothing_is_nothing() -> None:
    nothing = np.zeros((0, 1, 4, 4, 4), F32)
    gives = [np.zeros((0, 1, 2, 2, 2), F32), np.zeros((0, 1, 2, 2, 2), I64)]
    samples = np.zeros((0, 1, 3), F32)
    values, at = call("aten.fractional_max_pool3d.default", nothing, [2, 2, 2], [2, 2, 2], samples, gives=gives)
    assert values.shape == at.shape == (0, 1, 2, 2, 2)


def test_half_precision_is_rounded_once_at_the_end() -> None:
    ones = np.ones((1, 4096), ml_dtypes.bfloat16)
    total = call("aten.sum.dim_IntList", ones, [1], False, None, gives=np.ones(1, ml_dtypes.bfloat16))
    assert float(total[0]) == 4096
    product = call("aten.mm.default", ones, ones.T.copy(), gives=np.ones((1, 1), ml_dtypes.bfloat16))
    assert product.dtype == ml_dtypes.bfloat16
    assert float(product[0, 0]) == 4096


@pytest.mark.parametrize(
    ("source", "dtype", "expected"),
    [
        (f(-1.9, 300.0, 1.9), np.uint8, [255, 44, 1]),
        (f(0.0, nan, 0.1), np.bool_, [False, True, True]),
        (np.array([1 + 5j], np.complex64), np.float32, [1]),
        (i(2**31), np.int32, [-(2**31)]),
        (np.array([1.00390625, 1e39]), ml_dtypes.bfloat16, [1, inf]),
        (f(500.0, -460.0), ml_dtypes.float8_e4m3fn, [nan, -448]),
    ],
)
def test_a_conversion_cuts_off_wraps_around_and_rounds_to_even(source: Any, dtype: Any, expected: Any) -> None:
    target = np.dtype(dtype)
    token = Token("dtype", next(d for d in DType if d.long_name == target.name))
    rest = (token, None, None, None, False, None)
    found = call("aten._to_copy.default", source, *rest, gives=np.zeros(source.shape, target))
    np.testing.assert_array_equal(found.astype(np.float64), np.array(expected, np.float64))


def test_as_strided_reads_memory_by_the_declared_strides() -> None:
    x = np.arange(6.0, dtype=F32).reshape(2, 3)
    diagonal = call("aten.as_strided.default", x, [2], [4], None, gives=f(0, 0))
    np.testing.assert_array_equal(diagonal, f(0, 4))
    first = call("aten.as_strided.default", x, [6], [1], 0, gives=np.zeros(6, F32), strides=(1, 2))
    np.testing.assert_array_equal(first, f(0, 3, 1, 4, 2, 5))


def test_a_view_in_another_dtype_shares_the_bits() -> None:
    token = Token("dtype", "i32")
    found = call("aten.view.dtype", f(1.0, -0.0), token, gives=np.zeros(2, np.int32))
    np.testing.assert_array_equal(found, np.array([0x3F800000, -(2**31)], np.int32))


def test_attention_gives_zero_where_the_mask_leaves_nothing() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, 2, 4)).astype(F32) for _ in range(3))
    mask = np.array([[[[0.0, 0.0], [-inf, -inf]]]], F32)
    out, lse = call(
        "nn.scaled_dot_product_attention", q, k, v, mask, 0.0, False, 0.5, gives=[q, np.zeros((1, 1, 2), F32)]
    )
    weights = np.exp(0.5 * q[0, 0, 0] @ k[0, 0].T)
    np.testing.assert_allclose(out[0, 0, 0], weights / weights.sum() @ v[0, 0], rtol=1e-5)
    np.testing.assert_array_equal(out[0, 0, 1], np.zeros(4, F32))
    assert lse[0, 0, 1] == 0


def test_a_transposed_convolution_is_the_gradient_of_a_convolution() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 4, 5)), rng.standard_normal((4, 3, 2))
    tail = ([2], [1], [1], True, [1], 1)
    out = call("aten.convolution.default", x, w, None, *tail, gives=np.zeros((1, 3, 9)))
    y = rng.standard_normal(out.shape)
    back = call("aten.convolution.default", y, w, None, [2], [1], [1], False, [0], 1, gives=x)
    np.testing.assert_allclose(np.sum(out * y), np.sum(x * back), rtol=1e-12)


@pytest.mark.parametrize("size", [1, 3])
def test_the_gradient_of_a_batch_norm_is_that_of_its_definition(size: int) -> None:
    rng = np.random.default_rng(0)
    x, grad = rng.standard_normal((size, 2, 3, 2)), rng.standard_normal((size, 2, 3, 2))
    weight, zero = np.array([0.5, 2.0]), np.zeros(2)

    def forward(x: Any) -> list[Any]:
        args = (x, weight, None, zero, zero + 1, True, 0.1, 1e-5)
        op = "aten._native_batch_norm_legit_functional.default"
        return list(call(op, *args, gives=[x, zero, zero, zero, zero]))

    _, mean, rstd, _, _ = forward(x)
    args = (grad, x, weight, zero, zero + 1, mean, rstd, True, 1e-5, [True, True, True])
    found = call("aten.native_batch_norm_backward.default", *args, gives=[x, zero, zero])[0]
    step, direction = 1e-6, rng.standard_normal(x.shape)
    slope = (forward(x + step * direction)[0] - forward(x - step * direction)[0]) / (2 * step)
    np.testing.assert_allclose(np.sum(found * direction), np.sum(grad * slope), rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "args", "gives", "says"),
    [
        ("aten.index_select.default", (f(1, 2), 0, i(2)), f(0), "the index 2 is out of range for 2 elements"),
        ("aten.embedding.default", (f(1)[:, None], i(-1), -1, False, False), f(0)[:, None], "index -1 is out of range"),
        ("aten.gather.default", (f(1, 2), 0, i(5), False), f(0), "the index 5 is out of range for 2 elements"),
        ("aten.div.Tensor_mode", (i(1), i(0), "floor"), i(0), "an integer is divided by zero"),
        ("aten.view.default", (f(1, 2), [3]), f(0, 0, 0), "cannot reshape array of size 2 into shape (3,)"),
        ("aten.neg.default", (f(1, 2),), f(0), "%100 has the shape [2], not [1]"),
    ],
)
def test_an_op_that_refuses_its_operands_is_an_error_with_the_node(op: str, args: Any, gives: Any, says: str) -> None:
    with pytest.raises(InterpretError) as caught:
        call(op, *args, gives=gives)
    what, where, next_ = str(caught.value).splitlines()
    assert what.startswith(f"FL505: {op} refuses its operands: ")
    assert says in what
    assert where.startswith(f"  from: unknown line: %100 = {op}(%0")
    assert next_.startswith("  next: its operands are %0: ")
