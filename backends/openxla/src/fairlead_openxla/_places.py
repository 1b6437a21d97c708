"""Arrays over the inputs of earlier calls, found again by where those lay.

To import a tensor and to give it back takes XLA tens of microseconds, and in a loop an allocator gives the same
addresses again and again.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from fairlead_openxla._numbers import Array

__all__ = ["Places"]

_MOST = 16
"""So many places of one input are remembered."""


class Places:
    """The arrays of one program's inputs. They keep no memory: whoever calls has a tensor there.

    ``ready`` gives a tensor as XLA can read it, itself or a copy, and ``read`` an array over such a one.
    """

    def __init__(self, ready: Callable[[torch.Tensor], torch.Tensor], read: Callable[[torch.Tensor], Array]) -> None:
        self._ready = ready
        self._read = read
        self._known: defaultdict[int, dict[tuple[Any, ...], Array]] = defaultdict(dict)
        self._lock = threading.Lock()

    def array(self, index: int, tensor: torch.Tensor) -> tuple[Array, torch.Tensor]:
        """The array of the input at an index, of which the dtype never changes, and what it lies over.

        That is the tensor, or the copy that XLA can read.
        """
        where = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.device, tensor.is_neg(), tensor.is_conj()
        found = self._known[index].get(where)
        if found is not None:
            return found, tensor
        ready = self._ready(tensor)
        return self._made(index, ready, where), ready

    def _made(self, index: int, ready: torch.Tensor, where: tuple[Any, ...]) -> Array:
        address = ready.data_ptr()
        if not ready.numel() or address != where[0]:
            return self._read(ready)
        array = self._read(_without_keeping(ready))
        if array.unsafe_buffer_pointer() != address:  # XLA has made a copy
            return self._read(ready)
        with self._lock:
            known = self._known[index]
            if len(known) >= _MOST:
                del known[next(iter(known))]
            known[where] = array
        return array


def _without_keeping(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor over the memory of another, which it does not keep."""
    where = tensor.data_ptr(), tensor.device, tensor.nbytes
    storage = torch._C._construct_storage_from_data_pointer(*where)
    alias = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return alias.set_(storage, 0, tensor.shape, tensor.stride())
