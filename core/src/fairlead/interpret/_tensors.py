"""From the tensors of files to torch's."""

from __future__ import annotations

import torch

from fairlead._torch_types import TORCH_DTYPES
from fairlead.ir import TensorData


def tensor_of(data: TensorData) -> torch.Tensor:
    """A tensor of its own with the elements of a constant, as `fairlead.ir.File.constants` has it; row-major.

    >>> from fairlead.ir import DType
    >>> tensor_of(TensorData(DType.i32, (2,), memoryview(bytes([1, 0, 0, 0, 2, 0, 0, 0]))))
    tensor([1, 2], dtype=torch.int32)
    """
    dtype = TORCH_DTYPES[data.dtype]
    if not data.nbytes:
        return torch.empty(data.shape, dtype=dtype)
    return torch.frombuffer(bytearray(data.data), dtype=dtype).reshape(data.shape)
