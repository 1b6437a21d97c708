"""The table of rules: which function writes which op of the IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fairlead_onnx._call import Rule

__all__ = ["RULES", "enter", "rule"]

RULES: dict[str, Rule] = {}
"""The rule of each op; the modules of rules fill it when they are imported."""


R = TypeVar("R", bound=Rule)


def enter(rules: dict[str, Any], ops: Sequence[str], function: Callable[..., Any]) -> None:
    """Make a function the rule of these ops, which have none yet, in a table."""
    for op in ops:
        assert op not in rules, f"{op} has two rules"
        rules[op] = function


def rule(*ops: str) -> Callable[[R], R]:
    """Enter a function as the rule of these ops."""

    def entered(function: R) -> R:
        enter(RULES, ops, function)
        return function

    return entered
