"""Types, sizes and numbers of torch as the IR writes them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.nn import Parameter

from fairlead._capture._sympy import NotADimension, dim_of, stride_of, truth_of
from fairlead._torch_types import IR_DTYPES
from fairlead.ir import DimExpr, DType, TensorType, dims, row_major


class Uncapturable(Exception):
    """The graph holds something that the IR has no word for; the text says what."""


def type_of(tensor: torch.Tensor) -> TensorType:
    """The IR's type of a (fake) tensor; strides are kept only where they are not row-major.

    A lazily conjugated or negated tensor has the type of the numbers that it stands for.
    """
    if not isinstance(tensor, FakeTensor) and type(tensor) is not torch.Tensor and not isinstance(tensor, Parameter):
        raise Uncapturable(f"a tensor subclass, {type(tensor).__name__}")
    if tensor.layout is not torch.strided:
        raise Uncapturable(f"a tensor of layout {tensor.layout}")
    if tensor.is_quantized:
        raise Uncapturable("a quantized tensor")
    shape, strides = tuple(map(dim, tensor.shape)), tuple(map(_stride, tensor.stride()))
    return _tensor_type(tensor.dtype, shape, strides, tensor.device)


@functools.lru_cache(maxsize=4096)
def _tensor_type(
    dtype: torch.dtype, shape: tuple[dims.Dim, ...], strides: tuple[dims.Dim, ...], device: torch.device
) -> TensorType:
    """One object for equal types, which a graph has many of."""
    plain = strides == row_major(shape)
    return TensorType(DType(dtype_name(dtype)), shape, None if plain else strides, str(device))


def dim(value: Any, read: Callable[[Any], dims.Dim] = dim_of) -> dims.Dim:
    """A size of torch as a dimension."""
    if type(value) is int:
        return value
    try:
        return read(value)
    except NotADimension as error:
        raise Uncapturable(f"the symbolic number {error}") from error


def _stride(value: Any) -> dims.Dim:
    return dim(value, stride_of)


def dimension(value: Any) -> DimExpr | int:
    """A size of torch as an argument."""
    if not isinstance(value, int | torch.SymInt):
        raise Uncapturable(f"a symbolic number of type {type(value).__name__}")
    found = dim(value)
    return found if isinstance(found, int) else DimExpr(found)


def truth(value: Any) -> DimExpr | int:
    """A comparison of sizes as an integer expression that is 1 where it holds and 0 where it does not."""
    if isinstance(value, bool):
        return int(value)
    found = dim(value, truth_of)
    return found if isinstance(found, int) else DimExpr(found)


def dtype_name(dtype: torch.dtype) -> str:
    """The name that the IR has for a dtype."""
    if dtype not in IR_DTYPES:
        raise Uncapturable(f"the dtype {dtype}")
    return str(IR_DTYPES[dtype])
