"""Constants as a safetensors file, written piece by piece and read through the library's checks."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import safetensors

from fairlead.ir._model import DType
from fairlead.ir._tensors import TensorData

# The format lacks complex128, and its readers of 2024 complex64: complex numbers are stored as pairs of real ones.
_NAMES = {
    DType.bool: "BOOL", DType.u8: "U8", DType.i8: "I8", DType.u16: "U16", DType.i16: "I16", DType.u32: "U32",
    DType.i32: "I32", DType.u64: "U64", DType.i64: "I64", DType.f16: "F16", DType.bf16: "BF16", DType.f32: "F32",
    DType.f64: "F64", DType.f8e4m3fn: "F8_E4M3", DType.f8e5m2: "F8_E5M2", DType.c64: "F32", DType.c128: "F64",
}  # fmt: skip


def write_tensors(tensors: Mapping[str, TensorData]) -> Iterator[bytes | memoryview]:
    """The pieces of the file, so that no second copy of the weights is ever in memory.

    Not by the library's ``serialize``, whose arguments changed between its releases. Larger elements come first, which
    aligns all of them.
    """
    header, end = {}, 0
    ordered = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    for name in ordered:
        tensor = tensors[name]
        dtype, shape = _stored_as(tensor.dtype, tensor.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end := end + tensor.nbytes]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    yield from (tensors[name].data for name in ordered)


def read_tensors(data: bytes, types: Mapping[str, tuple[DType, tuple[int, ...]]]) -> dict[str, TensorData]:
    """The tensors of a file, each of which must be in ``types`` with its dtype and shape; a ValueError otherwise."""
    deserialize: Callable[[bytes], list[tuple[str, dict[str, Any]]]] = safetensors.deserialize
    try:
        found = deserialize(data)
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from error
    tensors = {}
    for name, raw in found:
        if name not in types:
            raise ValueError(f"a tensor {name[:80]!r}, which is no input of static shape")
        dtype, shape = types[name]
        if (raw["dtype"], raw["shape"]) != _stored_as(dtype, shape):
            raise ValueError(f"tensor {name!r} is {raw['dtype']}{raw['shape']}, the input is {dtype}{list(shape)}")
        tensors[name] = TensorData(dtype, shape, memoryview(raw["data"]))
    return tensors


def _stored_as(dtype: DType, shape: tuple[int, ...]) -> tuple[str, list[int]]:
    return _NAMES[dtype], [*shape, 2] if dtype.is_complex else list(shape)
