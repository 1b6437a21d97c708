"""Tensors in a recording's memory that were given out and not copied, which no replay may write while they live."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["Loan"]

_ALIGNMENT = 16
"""Bytes, of which an address that any dtype can be counted from is a multiple."""


class Loan:
    """What a forward saves for its backward, given out anew after each replay.

    The tensors of one replay are views of one storage, which is gone when the last of them is: Python's references to
    them would not tell, since autograd keeps what it saved without them.

    >>> x = torch.arange(6.0)
    >>> loan = Loan([x.view(2, 3), x[1:3]])
    >>> first, second = loan.give()
    >>> first.data_ptr() == x.data_ptr(), second.tolist(), loan.is_out
    (True, [1.0, 2.0], True)
    >>> del first
    >>> loan.is_out
    True
    >>> del second
    >>> loan.is_out
    False
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors = list(tensors)
        filled = [t for t in tensors if t.numel()]
        self.addresses = frozenset(t.data_ptr() for t in filled)
        self._start = min(self.addresses, default=0) // _ALIGNMENT * _ALIGNMENT
        self._bytes = max((_end(t) for t in filled), default=0) - self._start
        self._dtypes = {t.dtype for t in tensors}
        self._views = [
            (t.dtype, t.shape, t.stride(), (t.data_ptr() - self._start) // t.element_size() if t.numel() else 0)
            for t in tensors
        ]
        self._given: StorageWeakRef | None = None

    @property
    def is_out(self) -> bool:
        """Whether a tensor of the last replay may still be read."""
        return self._given is not None and not self._given.expired()  # type: ignore[no-untyped-call]

    def give(self) -> list[torch.Tensor]:
        """The tensors over their memory; what they hold is what the last replay wrote."""
        if not self.addresses:
            return [torch.empty_like(t) for t in self._tensors]
        device = self._tensors[0].device
        storage = torch._C._construct_storage_from_data_pointer(self._start, device, self._bytes)
        whole = {dtype: torch.empty(0, dtype=dtype, device=device).set_(storage) for dtype in self._dtypes}
        self._given = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        return [whole[dtype].as_strided(shape, strides, offset) for dtype, shape, strides, offset in self._views]


def _end(tensor: torch.Tensor) -> int:
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr() + extent * tensor.element_size()
