"""Which calls are recorded: a bounded number of recordings, each worth making."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Recordings"]

_log = logging.getLogger("fairlead.cudagraphs")

R = TypeVar("R")

_WORTH = 4
"""So many replays a recording, on the whole, or no more are made once there is no room."""

_MOST_SEEN = 4096
"""How many keys are counted at most that have no recording."""


class Recordings(Generic[R]):
    """The recordings of one graph, by what has to be the same for a replay: sizes, and addresses of weights.

    A key runs op by op ``warm_ups`` times before it is recorded. Of more than ``most`` recordings, the one that was
    replayed longest ago is dropped. Where that happens all the time, as for sizes that never come back, new keys stay
    op by op.

    >>> made = Recordings(most=1, warm_ups=1)
    >>> [made.find(key, lambda: "recording") for key in ("a", "a", "a", "b")]
    [None, 'recording', 'recording', None]
    """

    def __init__(self, most: int, warm_ups: int) -> None:
        self._most = most
        self._warm_ups = warm_ups
        self._found: OrderedDict[Hashable, R] = OrderedDict()
        self._seen: Counter[Hashable] = Counter()
        self._made = self._replayed = 0
        self._is_told = False

    def __len__(self) -> int:
        return len(self._found)

    def find(self, key: Hashable, record: Callable[[], R]) -> R | None:
        """The recording to replay for a key, made by ``record`` where it is time; None for a call op by op."""
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
            self._replayed += 1
            return found
        if self._seen[key] < self._warm_ups:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen[key] += 1
            return None
        if not self._has_room():
            return None
        while len(self._found) >= self._most:
            self._found.popitem(last=False)
        found = self._found[key] = record()
        self._made += 1
        return found

    def _has_room(self) -> bool:
        if len(self._found) < self._most:
            return True
        if self._most and self._replayed >= _WORTH * self._made:
            return True
        if self._most and not self._is_told:
            self._is_told = True
            _log.warning(
                "%d recordings of one graph were replayed %d times: sizes, or weights' addresses, that are new run op "
                "by op from now on; raise the option recordings, or pad to fewer sizes",
                self._made,
                self._replayed,
            )
        return False
