"""A function of torch's replaced for a while, for one thread alone: others may compile for torch meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["in_this_thread"]


@contextlib.contextmanager
def in_this_thread(
    owner: Any, name: str, instead: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """Have this thread call what ``instead`` makes of ``owner``'s function of that name."""
    found, mine = getattr(owner, name), threading.get_ident()
    other = instead(found)

    def chosen(*args: Any, **how: Any) -> Any:
        return (other if threading.get_ident() == mine else found)(*args, **how)

    setattr(owner, name, chosen)
    try:
        yield
    finally:
        setattr(owner, name, found)
