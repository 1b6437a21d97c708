"""Inputs of a graph from their specifications, and back."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch

from fairlead.interpret import restride, torch_dtype
from fairlead.ir import Graph, TensorType, Value, row_major
from fairlead.ir.random import Distribution, draw
from fairlead_conformance._pack._data import Drawn, Kept, Saved, Specification

__all__ = ["made", "specified"]


def made(
    graph: Graph,
    inputs: Sequence[Specification],
    *,
    name: str,
    seed: int,
    forward: tuple[Sequence[Any], Sequence[Any]] = ((), ()),
) -> list[Any]:
    """The inputs of a graph without symbols: the same everywhere for the same ``name`` and ``seed``.

    ``forward``: the inputs and outputs of the graph before this one, for inputs that are `Saved`.
    """
    stream = zlib.crc32(name.encode()) << 16
    return [
        _made(given, item.value, seed, stream + index, forward)
        for index, (item, given) in enumerate(zip(graph.inputs, inputs, strict=True))
    ]


def _made(
    given: Specification, value: Value, seed: int, stream: int, forward: tuple[Sequence[Any], Sequence[Any]]
) -> Any:
    if isinstance(given, int):
        return given
    if isinstance(given, Saved):
        return forward[0 if given.is_input else 1][given.index]
    type_ = value.tensor
    shape = _static(type_.shape)
    if isinstance(given, Kept):
        dense = _of_bytes(bytearray(given.data), type_, shape)
    else:
        dense = _of_bytes(draw(given.distribution, seed, stream, type_.dtype, shape).data, type_, shape)
    strides = _declared(type_) if given.strides is None else given.strides
    return _placed(restride(dense, strides), given.offset)


def specified(tensor: torch.Tensor, type_: TensorType, distribution: Distribution | None) -> Drawn | Kept:
    """The specification of a tensor: its layout, and its elements where no distribution is given."""
    strides: tuple[int, ...] | None = tuple(tensor.stride())
    if strides == _declared(type_):
        strides = None
    offset = int(tensor.storage_offset())
    if distribution is not None:
        return Drawn(distribution, strides, offset)
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return Kept(flat.view(torch.uint8).numpy().tobytes(), strides, offset)


def _of_bytes(data: Any, type_: TensorType, shape: tuple[int, ...]) -> torch.Tensor:
    dtype = torch_dtype(type_.dtype)
    if not len(data):
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).reshape(shape)


def _placed(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """The same tensor, its first element so many elements into its memory."""
    if not offset:
        return tensor
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else 0
    memory = torch.zeros(offset + extent, dtype=tensor.dtype)
    memory[offset:] = tensor.as_strided((extent,), (1,))
    return memory.as_strided(tensor.shape, tensor.stride(), offset)


def _declared(type_: TensorType) -> tuple[int, ...]:
    shape = _static(type_.shape)
    return _static(type_.strides) if type_.strides is not None else _static(row_major(shape))


def _static(dims: Sequence[int | str]) -> tuple[int, ...]:
    return tuple(int(d) for d in dims)
