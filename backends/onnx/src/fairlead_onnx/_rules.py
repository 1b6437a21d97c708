"""The table of rules: which function writes which op of the IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fairlead_onnx._call import Rule

__all__ = ["RULES", "rule"]

RULES: dict[str, Rule] = {}
"""The rule of each op; the modules of rules fill it when they are imported."""


R = TypeVar("R", bound=Rule)


def rule(*ops: str) -> Callable[[R], R]:
    """Enter a function as the rule of these ops."""

    def enter(function: R) -> R:
        for op in ops:
            assert op not in RULES, f"{op} has two rules"
            RULES[op] = function
        return function

    return enter
