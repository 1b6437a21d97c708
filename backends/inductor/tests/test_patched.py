"""Functions are replaced for one thread alone, whichever of several leaves first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from fairlead_inductor._patched import in_this_thread


def plain(x: int) -> int:
    return x


def owner_of(function: Callable[[int], int]) -> Any:
    owner: Any = ModuleType("owner")
    owner.function = function
    return owner


@pytest.mark.parametrize("leaves_first", [True, False])
def test_a_thread_that_comes_later_and_leaves_whenever_changes_nothing_for_others(leaves_first: bool) -> None:
    owner = owner_of(plain)
    entered, may_leave, seen = threading.Event(), threading.Event(), list[int]()

    def other() -> None:
        with in_this_thread(owner, "function", lambda found: lambda x: found(x) + 100):
            entered.set()
            may_leave.wait()
            seen.append(owner.function(1))
        seen.append(owner.function(1))

    thread = threading.Thread(target=other)
    with in_this_thread(owner, "function", lambda found: lambda x: found(x) + 10):
        thread.start()
        entered.wait()
        assert owner.function(1) == 11
        if leaves_first:
            may_leave.set()
            thread.join()
            assert owner.function(1) == 11
    assert owner.function(1) == 1
    may_leave.set()
    thread.join()
    assert seen == [101, 1]
    assert owner.function is plain


def test_one_within_another_and_an_error_leave_what_was_there() -> None:
    owner = owner_of(plain)
    with in_this_thread(owner, "function", lambda found: lambda x: found(x) + 10):
        with (
            pytest.raises(ZeroDivisionError),
            in_this_thread(owner, "function", lambda found: lambda x: found(x) // 0),
        ):
            owner.function(1)
        assert owner.function(1) == 11
    assert owner.function is plain
