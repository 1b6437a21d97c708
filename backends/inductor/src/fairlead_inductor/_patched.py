"""Functions of torch's replaced for a while, for one thread alone: others may compile for torch meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["in_this_thread"]

_Function = Callable[..., Any]

_lock = threading.Lock()
_replaced: dict[tuple[Any, str], tuple[_Function, dict[int, _Function]]] = {}
"""By owner and name torch's function, and what threads call instead."""


@contextlib.contextmanager
def in_this_thread(owner: Any, name: str, instead: Callable[[_Function], _Function]) -> Iterator[None]:
    """Have this thread call what ``instead`` makes of ``owner``'s function of that name.

    Several threads may do so at once, and leave in any order; the last one puts torch's function back.
    """
    key, me = (owner, name), threading.get_ident()
    with _lock:
        if key not in _replaced:
            _replaced[key] = getattr(owner, name), {}
            setattr(owner, name, _choosing(*_replaced[key]))
        found, others = _replaced[key]
        before = others.get(me)
        others[me] = instead(found)
    try:
        yield
    finally:
        with _lock:
            if before is None:
                del others[me]
            else:
                others[me] = before
            if not others:
                setattr(owner, name, found)
                del _replaced[key]


def _choosing(found: _Function, others: dict[int, _Function]) -> _Function:
    def chosen(*args: Any, **how: Any) -> Any:
        return others.get(threading.get_ident(), found)(*args, **how)

    return chosen
