"""A graph with every floating-point type made as wide as it gets, so that running it tells what is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import torch

from fairlead.ir import DType, Graph, TensorType, Token
from fairlead_conformance._retyped import Change, retyped

__all__ = ["rounds", "widened", "widened_inputs"]


def widened(graph: Graph) -> Graph:
    """The graph in float64 and complex128, whatever it says; integers and booleans stay as they are."""
    return retyped(graph, Change(_type, _token))


def widened_inputs(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """The inputs for the widened graph, with the strides that they have."""
    return [_wide_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def rounds(dtype: DType) -> bool:
    """Whether arithmetic in this type rounds, as that of integers does not."""
    return bool(dtype.is_floating or dtype.is_complex)


def _wide_dtype(dtype: DType) -> DType:
    if dtype.is_complex:
        return DType.c128
    return DType.f64 if dtype.is_floating else dtype


def _wide_tensor(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _type(type_: TensorType) -> TensorType:
    return msgspec.structs.replace(type_, dtype=_wide_dtype(type_.dtype))


def _token(token: Token) -> Token:
    return Token("dtype", _wide_dtype(DType(token.name)).value) if token.kind == "dtype" else token
