"""What the recordings on one device share: memory, a stream to record on, and the order in which they are replayed.

Recordings use one pool of memory, as if they were functions called one after another: what one computed on its way is
overwritten by the next. So one at a time is given to the device, results are copied out before the next, and a replay
on another stream waits for the one before.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["Pool", "pool_of"]


class Pool:
    """Memory and order for the recordings on one device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._lock = threading.Lock()
        self._last: torch.cuda.Stream | None = None

    @functools.cached_property
    def handle(self) -> Any:
        """The memory that all recordings share."""
        return torch.cuda.graph_pool_handle()

    @functools.cached_property
    def stream(self) -> torch.cuda.Stream:
        """Where recordings are made: the default stream cannot be recorded."""
        return torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Within, nobody else records or replays; work comes after that of the last turn, on whatever stream."""
        with self._lock, torch.cuda.device(self.device):
            current = torch.cuda.current_stream(self.device)
            if self._last is not None and self._last != current:
                current.wait_stream(self._last)
            self._last = current
            yield


@functools.cache
def pool_of(device: torch.device) -> Pool:
    """The pool of a device, which lives as long as the process."""
    return Pool(device)
