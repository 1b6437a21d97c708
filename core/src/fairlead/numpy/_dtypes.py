"""Element types: how NumPy has them, how they convert, and which one two operands are compared in."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np

from fairlead.errors import ExtraMissingError
from fairlead.ir import Complex, DType, TensorData

Array: TypeAlias = Any
"""A NumPy array of any element type; the element types that rules meet are known only when a graph runs."""

_ML_DTYPES = frozenset({DType.bf16, DType.f8e4m3fn, DType.f8e5m2})
_HALVES = frozenset({DType.f16, *_ML_DTYPES})


@functools.cache
def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of a dtype of the IR; those that NumPy lacks are those of ``ml_dtypes``.

    Raises `ExtraMissingError` where that package is needed and not installed.

    >>> numpy_dtype(DType.f32)
    dtype('float32')
    """
    if dtype not in _ML_DTYPES:
        return np.dtype(dtype.long_name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise ExtraMissingError(
            f"tensors of {dtype} need ml_dtypes, which is not installed",
            where="fairlead.numpy",
            next="pip install 'fairlead[numpy]'",
        ) from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype.long_name))
    return found


@functools.cache
def _names() -> dict[str, DType]:
    return {d.long_name: d for d in DType}


def dtype_of(x: Array) -> DType:
    """The dtype of the IR that an array has; a TypeError where there is none."""
    name = x.dtype.name
    if name not in _names():
        raise TypeError(f"its element type {name} is none of the IR's")
    return _names()[name]


def array(data: TensorData) -> Array:
    """The array over the memory of a constant of a file, in its own element type.

    >>> array(TensorData(DType.i16, (2,), memoryview(bytearray(b"\\1\\0\\2\\0"))))
    array([1, 2], dtype=int16)
    """
    return np.frombuffer(data.data, numpy_dtype(data.dtype)).reshape(data.shape)


def cast(x: Array, dtype: DType) -> Array:
    """The numbers in another element type, as a conversion in a graph has it.

    Rounded to nearest, ties to even; to integers cut off towards zero and wrapped around; of complex numbers the real
    part; booleans are what is not zero.
    """
    x = np.asarray(x)
    target = numpy_dtype(dtype)
    if x.dtype == target:
        return x
    if dtype is DType.bool:
        return x != 0
    if x.dtype.kind == "c" and not dtype.is_complex:
        x = x.real
    if dtype.is_integer and x.dtype.kind not in "biu":
        x = wide(x)
        return x.astype(target) if dtype is DType.u64 else x.astype(np.int64).astype(target)
    if dtype in _ML_DTYPES and x.dtype.kind in "biu":
        x = x.astype(np.float32)
    return x.astype(target)


def wide(x: Array) -> Array:
    """Real numbers as float64, complex ones as complex128, integers and booleans as they are."""
    x = np.asarray(x)
    match x.dtype.kind:
        case "b" | "i" | "u":
            return x
        case "c":
            return x.astype(np.complex128)
    return x.astype(np.float64)


def floating(x: Array) -> Array:
    """Like `wide`, but integers and booleans become float64 as well."""
    x = wide(x)
    return x if x.dtype.kind == "c" else x.astype(np.float64)


def number(x: object) -> Any:
    """An attribute that is a number, complex ones as Python has them."""
    return complex(x.re, x.im) if isinstance(x, Complex) else x


def operand(x: Array, dtype: DType) -> Array:
    """What an arithmetic op of this result computes with: the operand converted to its dtype, and widened.

    A Python number is rounded to it as well, but for those shorter than float32, in which kernels keep it in float32.
    """
    if not isinstance(x, np.ndarray) and dtype in _HALVES:
        dtype = DType.f32
    return wide(cast(number(x), dtype))


def promoted(*operands: object) -> DType:
    """The dtype that operands of different ones are compared in.

    Arrays with dimensions come before those without, and those before Python numbers: one that comes later counts only
    where its category (boolean, integer, floating, complex) is higher. Source: "Type promotion" in torch's
    ``tensor_attributes`` page.
    """
    ranks: list[DType | None] = [None, None, None]
    for x in operands:
        place, dtype = (0 if x.ndim else 1, dtype_of(x)) if isinstance(x, np.ndarray) else (2, _of_number(number(x)))
        before = ranks[place]
        ranks[place] = dtype if before is None else _joined(before, dtype)
    result: DType | None = None
    for rank in ranks:
        if rank is not None and (result is None or _category(rank) > _category(result)):
            result = rank
    assert result is not None, "an op has operands"
    return result


def _of_number(x: Any) -> DType:
    match x:
        case bool():
            return DType.bool
        case int():
            return DType.i64
        case complex():
            return DType.c64
    return DType.f32


def _category(dtype: DType) -> int:
    if dtype is DType.bool:
        return 0
    return 1 if dtype.is_integer else 3 if dtype.is_complex else 2


def _joined(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if _category(a) != _category(b):
        return _with_complex(a, b) if DType.c64 in (a, b) else max(a, b, key=_category)
    if {a, b} == {DType.f16, DType.bf16}:
        return DType.f32
    if a.is_integer:
        return _names()[np.promote_types(numpy_dtype(a), numpy_dtype(b)).name]
    return max(a, b, key=lambda d: d.itemsize)


def _with_complex(a: DType, b: DType) -> DType:
    return DType.c128 if DType.f64 in (a, b) else DType.c64
