"""Sizes over symbols are what they are once the symbols have values; NumPy and Python say what that is."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead.errors import VerificationError
from fairlead.ir import DimExpr, DType, TensorType, Value, dims
from fairlead.ir.dims import Dim
from fairlead.ir.infer import infer
from fairlead.ir.infer._ranges import choices, decided

Shape = tuple[Dim, ...]
VALUES = {"a": 2, "b": 3, "n": 7}
SIZES = st.one_of(st.integers(0, 4), st.sampled_from(["a", "b", "n", "a*b", "n + 1"]))
SHAPES = st.lists(SIZES, max_size=4).map(tuple)
BOUNDS = st.one_of(st.none(), st.integers(-9, 9), st.just(2**63 - 1))


def tensor(shape: Shape, dtype: DType = DType.f32) -> Value:
    return Value(0, TensorType(dtype, tuple(dims.normalize(d) for d in shape)))


def number(shape: Shape) -> tuple[int, ...]:
    return tuple(dims.evaluate(d, VALUES) for d in shape)


def shape_of(op: str, *args: object) -> Shape:
    (found,) = infer(op, args)  # type: ignore[arg-type]
    assert isinstance(found, TensorType)
    return found.shape


@settings(derandomize=True, deadline=None)
@given(SHAPES, SHAPES)
def test_shapes_broadcast_as_numbers_do(x: Shape, y: Shape) -> None:
    args = (tensor(x), tensor(y), 1)
    try:
        expected = numpy.broadcast_shapes(number(x), number(y))
    except ValueError:
        pairs = zip(reversed(x), reversed(y), strict=False)
        if any(isinstance(m, int) and isinstance(n, int) and m != n and 1 not in (m, n) for m, n in pairs):
            with pytest.raises(VerificationError, match="do not broadcast"):
                infer("aten.add.Tensor", args)
        return
    assert number(shape_of("aten.add.Tensor", *args)) == expected


@settings(derandomize=True, deadline=None)
@given(SHAPES, st.lists(st.integers(0, 4), max_size=4).map(tuple))
def test_broadcasting_does_not_depend_on_the_order(x: Shape, y: Shape) -> None:
    try:
        one = shape_of("aten.mul.Tensor", tensor(x), tensor(y))
    except VerificationError:
        with pytest.raises(VerificationError):
            infer("aten.mul.Tensor", (tensor(y), tensor(x)))
    else:
        assert shape_of("aten.mul.Tensor", tensor(y), tensor(x)) == one


@settings(derandomize=True, deadline=None)
@given(SIZES, BOUNDS, BOUNDS, st.integers(1, 4), st.integers(0, 12))
def test_a_slice_is_as_long_as_pythons(size: Dim, start: int | None, end: int | None, step: int, value: int) -> None:
    found = shape_of("aten.slice.Tensor", tensor((size,)), 0, start, end, step)[0]
    values = dict.fromkeys(VALUES, value)
    length = dims.evaluate(size, values)
    assert dims.evaluate(found, values) == len(range(length)[start:end:step])


@settings(derandomize=True, deadline=None)
@given(SHAPES, st.permutations(range(4)))
def test_a_reshape_keeps_the_number_of_elements(shape: Shape, order: list[int]) -> None:
    target = tuple(shape[i] for i in order if i < len(shape))
    size = tuple(d if isinstance(d, int) else DimExpr(d) for d in target)
    assert shape_of("aten.view.default", tensor(shape), size) == tuple(map(dims.normalize, target))
    if 0 not in shape:
        for i in range(len(size)):
            open_ = (*size[:i], -1, *size[i + 1 :])
            assert number(shape_of("aten.view.default", tensor(shape), open_)) == number(target)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 4), max_size=4), st.integers(2, 4))
def test_a_reshape_to_another_number_of_elements_is_refused(shape: list[int], more: int) -> None:
    with pytest.raises(VerificationError, match="numbers of elements"):
        infer("aten.view.default", (tensor(tuple(shape)), (*shape, more)))


@settings(derandomize=True, deadline=None)
@given(st.integers(-3, 3), SIZES, SIZES)
def test_a_diagonal_is_as_long_as_numpys(offset: int, rows: Dim, columns: Dim) -> None:
    found = shape_of("aten.diagonal.default", tensor((rows, columns)), offset, 0, 1)
    assert number(found) == numpy.diagonal(numpy.zeros(number((rows, columns))), offset).shape


@settings(derandomize=True, deadline=None)
@given(st.integers(-5, 5), SIZES, st.integers(-3, 3).filter(bool))
def test_a_range_is_as_long_as_pythons(start: int, end: Dim, step: int) -> None:
    stop = dims.evaluate(end, VALUES)
    assume((stop - start) * step >= 0)
    bound = end if isinstance(end, int) else DimExpr(dims.normalize(end))  # type: ignore[arg-type]
    found = shape_of("aten.arange.start_step", start, bound, step, None, None, None, None)
    assert number(found) == (len(range(start, stop, step)),)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))
def test_a_window_that_fits_is_counted(size: int, kernel: int, step: int, pad: int, spread: int) -> None:
    reach = spread * (kernel - 1) + 1
    assume(size + 2 * pad >= reach)
    expected = len(range(0, size + 2 * pad - reach + 1, step))
    x, weight = tensor((1, 1, "n")), tensor((1, 1, kernel))
    found = shape_of("aten.convolution.default", x, weight, None, (step,), (pad,), (spread,), False, (0,), 1)
    assert dims.evaluate(found[2], {"n": size}) == expected


EXPRESSIONS = st.recursive(
    st.one_of(st.integers(-4, 4).map(str), st.sampled_from(sorted(VALUES))),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 5)).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    ),
    max_leaves=7,
)


@settings(derandomize=True, deadline=None)
@given(EXPRESSIONS, st.fixed_dictionaries({name: st.integers(2, 6) for name in VALUES}))
def test_deciding_by_ranges_keeps_the_value(text: str, values: dict[str, int]) -> None:
    dim = dims.normalize(text)
    expected = dims.evaluate(dim, values)
    for ranges in ({}, {"a": (2, 6), "b": (2, math.inf)}, dict.fromkeys(VALUES, (2, 6))):
        assert dims.evaluate(decided(dim, ranges), values) == expected
    assert expected in [dims.evaluate(choice, values) for choice in choices(dim)]
