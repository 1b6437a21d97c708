"""Ops that read memory past the value they are given: of a view, they may read all that it is a view of."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node as FxNode

_AS_STRIDED = torch.ops.aten.as_strided.default


def read_from_base(node: FxNode, args: list[Any]) -> list[Any] | None:
    """The arguments of a node, but for ``as_strided`` of a view, which becomes one of the value that the view shows.

    A backend may compute a view as a value of its own, which has no other memory. None where that cannot be said: an
    offset counts from the start of the memory, and the next call's input may begin elsewhere.
    """
    if node.target is not _AS_STRIDED:
        return args
    view, size, stride, offset = args
    base = _base(view)
    if base is view:
        return args
    if offset is None:
        if base.op == "placeholder":
            return None
        offset = view.meta["val"].storage_offset()
    return [base, size, stride, offset]


def _base(node: FxNode) -> FxNode:
    """Up a chain of views to the value whose memory they show; an input is as far as that goes."""
    while node.op == "call_function":
        source = node.args[0]
        if node.target is operator.getitem and isinstance(source, FxNode):
            source = source.args[0]
        if not isinstance(source, FxNode) or _memory(source) is None or _memory(source) != _memory(node):
            break
        node = source
    return node


def _memory(node: FxNode) -> int | None:
    value = node.meta.get("val")
    return int(value.untyped_storage()._cdata) if isinstance(value, torch.Tensor) else None
