"""The safetensors format, written piece by piece and read in place.

Not with the library: its ``deserialize`` copies all weights, its ``safe_open`` takes no part of a file, and the
arguments of its ``serialize`` changed between releases. The checks are those of its format.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairlead.ir._tensors import TensorData
from fairlead.ir._types import DType

# The format lacks complex128, and its readers of 2024 complex64: complex numbers are stored as pairs of real ones.
_NAMES = {
    DType.bool: "BOOL", DType.u8: "U8", DType.i8: "I8", DType.u16: "U16", DType.i16: "I16", DType.u32: "U32",
    DType.i32: "I32", DType.u64: "U64", DType.i64: "I64", DType.f16: "F16", DType.bf16: "BF16", DType.f32: "F32",
    DType.f64: "F64", DType.f8e4m3fn: "F8_E4M3", DType.f8e5m2: "F8_E5M2", DType.c64: "F32", DType.c128: "F64",
}  # fmt: skip
_SIZES = {name: dtype.itemsize for dtype, name in _NAMES.items() if not dtype.is_complex}
_ALIGNMENT = 64
_LARGEST_HEADER = 100_000_000


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def write_tensors(tensors: Mapping[str, TensorData]) -> Iterator[bytes | memoryview]:
    """The pieces of the file, so that no second copy of the weights is ever in memory.

    Larger elements come first, which aligns all of them.
    """
    header, end = {}, 0
    ordered = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    for name in ordered:
        tensor = tensors[name]
        dtype, shape = _stored_as(tensor.dtype, tensor.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end := end + tensor.nbytes]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    yield struct.pack("<Q", len(text)) + text
    yield from (tensors[name].data for name in ordered)


class Tensors:
    """The tensors of a safetensors file that lies in memory. A ValueError where it is malformed."""

    def __init__(self, data: memoryview) -> None:
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > min(len(data) - 8, _LARGEST_HEADER):
            raise ValueError(f"a header of {length} bytes in {len(data)}")
        self._data = data[8 + length :]
        self._entries = _entries(bytes(data[8 : 8 + length]))
        _check_layout(self._entries, len(self._data))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def get(self, name: str, dtype: DType, shape: tuple[int, ...]) -> TensorData:
        """A tensor, in place. A ValueError where there is none of that name, dtype and shape."""
        entry = self._entries.get(name)
        if entry is None:
            raise ValueError(f"there is no tensor {name[:80]!r}")
        if (entry.dtype, list(entry.shape)) != _stored_as(dtype, shape):
            raise ValueError(f"tensor {name!r} is {entry.dtype}{list(entry.shape)}, the input is {dtype}{list(shape)}")
        start, end = entry.data_offsets
        return TensorData(dtype, shape, self._data[start:end])


def _entries(header: bytes) -> dict[str, _Entry]:
    try:
        raw = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        return {name: msgspec.json.decode(entry, type=_Entry) for name, entry in raw.items()}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"its header: {error}") from error


def _check_layout(entries: Mapping[str, _Entry], size: int) -> None:
    """The tensors fill the file from its start to its end, without holes and without overlap."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        start, stop = entry.data_offsets
        if entry.dtype not in _SIZES or any(d < 0 for d in entry.shape) or len(entry.shape) > 64:
            raise ValueError(f"tensor {name[:80]!r} is {entry.dtype[:80]}{list(entry.shape[:64])}")
        if start != end or stop - start != math.prod(entry.shape) * _SIZES[entry.dtype]:
            raise ValueError(f"tensor {name[:80]!r} lies from {start} to {stop}, not where or not as large as it must")
        end = stop
    if end != size:
        raise ValueError(f"its tensors end at {end} of {size} bytes")


def _stored_as(dtype: DType, shape: tuple[int, ...]) -> tuple[str, list[Any]]:
    return _NAMES[dtype], [*shape, 2] if dtype.is_complex else list(shape)
