"""What the nodes of an OpenVINO model are."""

from __future__ import annotations

from typing import Any

__all__ = ["is_constant"]

_FOLDED = frozenset({"Convert", "Reshape", "Transpose"})
"""What stands between a weight and its product until the plugin folds it."""


def is_constant(node: Any) -> bool:
    """Whether a node is a constant when the plugin has folded what it can."""
    while node.get_type_name() in _FOLDED:
        node = node.input_value(0).get_node()
    return bool(node.get_type_name() == "Constant")
