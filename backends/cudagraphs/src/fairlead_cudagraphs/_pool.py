"""What the recordings on one device share: memory, a stream to record on, and the order in which they are replayed.

Recordings use one pool of memory, as if they were functions called one after another: what one computed on its way is
overwritten by the next. So one at a time is given to the device, results are copied out before the next, and a replay
on another stream waits for the one before. What a forward saves is not copied out, but lent to its backward, as is what
is written to inputs at once (`fairlead_cudagraphs._loans`): such a recording has memory of its own.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import torch

__all__ = ["Pool", "pool_of"]


class Lender(Protocol):
    """A recording, for as much as the pool has to know of it."""

    @property
    def is_lent(self) -> bool: ...


class Pool:
    """Memory and order for the recordings on one device. Of an earlier ``epoch`` none may be replayed."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.epoch = 0
        self._lock = threading.Lock()
        self._last: torch.cuda.Stream | None = None
        self._places: Counter[int] = Counter()
        self._borrowed: dict[int, tuple[Lender, torch.cuda.Stream]] = {}

    def admit(self, owner: object, addresses: Iterable[int]) -> None:
        """A backward may read in place what a forward's recording lends there, as long as the owner exists."""
        known = frozenset(filter(None, addresses))  # what has no elements lies nowhere
        self._places.update(known)
        weakref.finalize(owner, _forget, self._places, known).atexit = False

    def stays(self, address: int) -> bool:
        """Whether what is at this address lies there at every call, as far as is known."""
        return address in self._places

    def lend(self, lender: Lender, stream: torch.cuda.Stream) -> None:
        """Keep a recording that lends until it is replayed or swept, forgotten or not; it is read on ``stream``."""
        self._borrowed[id(lender)] = lender, stream

    def reclaim(self, lender: Lender) -> None:
        """Have the current stream wait for those that read what the recording lent, which is gone."""
        _, stream = self._borrowed.pop(id(lender), (None, None))
        current = torch.cuda.current_stream(self.device)
        if stream is not None and stream != current:
            current.wait_stream(stream)

    def sweep(self) -> None:
        """Forget the recordings that lend nothing any more."""
        for lender, _ in list(self._borrowed.values()):
            if not lender.is_lent:
                self.reclaim(lender)

    @functools.cached_property
    def handle(self) -> Any:
        """The memory that all recordings share. First asked for on ``stream``.

        It lasts as long as a recording that uses it, and so an empty one is kept.
        """
        handle = torch.cuda.graph_pool_handle()
        self._keeper: Any = torch.cuda.CUDAGraph()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of a recording of nothing
            self._keeper.capture_begin(pool=handle, capture_error_mode="thread_local")
            self._keeper.capture_end()
        return handle

    @functools.cached_property
    def stream(self) -> torch.cuda.Stream:
        """Where recordings are made: the default stream cannot be recorded."""
        return torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]

    def repair(self, state: torch.Tensor) -> None:
        """After a recording that failed: torch's generator believes that it is being recorded, and refuses to draw.

        It goes on from ``state`` with a new one inside. Recordings that know the old one begin a new epoch.
        """
        fresh: Any = torch.Generator(self.device)
        fresh.set_state(state)
        generator: Any = torch.cuda.default_generators[self.device.index or 0]
        generator.graphsafe_set_state(fresh)
        self.epoch += 1
        self.__dict__.pop("handle", None)  # torch believes that it is being recorded to

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Within, nobody else records or replays; work comes after that of the last turn, on whatever stream."""
        with self._lock, torch.cuda.device(self.device):
            current = torch.cuda.current_stream(self.device)
            if self._last is not None and self._last != current:
                current.wait_stream(self._last)
            self._last = current
            yield


def _forget(places: Counter[int], addresses: Iterable[int]) -> None:
    places.subtract(addresses)
    for address in addresses:
        if not places[address]:
            del places[address]


@functools.cache
def pool_of(device: torch.device) -> Pool:
    """The pool of a device, which lives as long as the process."""
    return Pool(device)
