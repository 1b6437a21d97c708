"""Tensors as bytes: what the constants of a file are, without torch and without NumPy."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any

from fairlead.ir._types import DType

_BY_LONG_NAME = {d.long_name: d for d in DType}
_NUMPY_LETTERS = {"bool": "b", "u": "u", "i": "i", "f": "f", "c": "c"}


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class TensorData:
    """The elements of a tensor, row-major and little-endian, in memory that may be written to.

    ``numpy.asarray(data)`` shares that memory (an element type that NumPy lacks comes as raw bytes), and so does
    ``torch.frombuffer(data.data, dtype=...)``.

    >>> TensorData(DType.u8, (2,), memoryview(bytearray(b"ab"))).nbytes
    2
    """

    dtype: DType
    shape: tuple[int, ...]
    data: memoryview

    def __post_init__(self) -> None:
        if self.data.nbytes != self.nbytes:
            raise ValueError(f"{self.data.nbytes} bytes for {self.dtype}{list(self.shape)}, which has {self.nbytes}")

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def __array_interface__(self) -> dict[str, object]:
        kind = _NUMPY_LETTERS.get(self.dtype.value.rstrip("0123456789"), "V")
        typestr = f"{'<' if self.dtype.itemsize > 1 else '|'}{kind}{self.dtype.itemsize}"
        return {"version": 3, "shape": self.shape, "typestr": typestr, "data": self.data}


def tensor_data(tensor: object) -> TensorData:
    """The elements of a torch tensor, a NumPy array or a `TensorData`, copied where they are not row-major on the CPU.

    A TypeError for anything else, and for tensors without dense elements. Torch and NumPy are only looked at where the
    caller has imported them.
    """
    if isinstance(tensor, TensorData):
        return tensor
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(tensor, numpy.ndarray | numpy.generic):
        return _of_numpy(tensor)
    if torch is not None and isinstance(tensor, torch.Tensor):
        return _of_torch(tensor, torch)
    raise TypeError(f"a {type(tensor).__name__} is neither a torch tensor nor a NumPy array")


def _of_numpy(array: Any) -> TensorData:
    dtype = _dtype(array.dtype.name)
    little = array if array.dtype.byteorder in "<=|" else array.astype(array.dtype.newbyteorder("<"))
    return TensorData(dtype, tuple(array.shape), memoryview(bytearray(little.tobytes())))


def _of_torch(tensor: Any, torch: Any) -> TensorData:
    dtype = _dtype(str(tensor.dtype).removeprefix("torch."))
    if tensor.layout is not torch.strided:
        raise TypeError(f"its layout is {tensor.layout}, not strided")
    shape = tuple(tensor.shape)
    try:
        dense = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    except RuntimeError as error:
        raise TypeError(f"its elements cannot be read: {error}") from error
    if dense.untyped_storage().device.type != "cpu":
        raise TypeError("it has no elements (a fake tensor)")
    size = math.prod(shape) * dtype.itemsize
    import ctypes

    # Not through .numpy(), which lacks bfloat16 and needs NumPy.
    elements = bytearray((ctypes.c_char * size).from_address(dense.data_ptr())) if size else bytearray()
    return TensorData(dtype, shape, memoryview(elements))


def _dtype(name: str) -> DType:
    if name not in _BY_LONG_NAME:
        raise TypeError(f"its element type {name} is none of the IR's")
    return _BY_LONG_NAME[name]
