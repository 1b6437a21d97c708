"""Lists of tensors put in another order: a step of training has hundreds, on the way in and on the way out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["picking"]


def picking(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What gives a sequence's items at these places, in their order, without a step of Python for each.

    >>> picking([2, 0])("abc"), picking([1])("abc"), picking([])("abc")
    (('c', 'a'), ('b',), ())
    """
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda items: tuple(items[i] for i in places)
