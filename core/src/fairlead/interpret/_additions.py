"""Rows added to rows of a tensor on the CPU by torch's quicker kernel for that."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from fairlead.ir import DType, Node, TensorType, Value

__all__ = ["adding_rows"]

_MANY = 4096
"""So many numbers take torch's ``index_put``, which adds by atomic instructions, longer than its ``index_add``."""


def adding_rows(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The module of `to_fx`, changed in place, in which many rows that are added at one list of places are so quicker.

    Capture has every addition at computed places as ``index_put``, ``index_add`` too, in whose order rows are added.
    """
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.index_put.default):
        if _adds_rows(node.meta["node"]):
            node.target = _add_rows
    module.recompile()
    return module


def _adds_rows(node: Node) -> bool:
    x, indices, values, accumulates = node.args
    if not accumulates or not isinstance(x, Value) or not isinstance(indices, tuple) or len(indices) != 1:
        return False
    (index,) = indices
    if not isinstance(index, Value) or not isinstance(values, Value) or not _are_places(index.tensor):
        return False
    x_type, numbers = x.tensor, (*index.tensor.shape, *x.tensor.shape[1:])
    known = [n for n in numbers if isinstance(n, int)]
    many = len(known) < len(numbers) or math.prod(known) >= _MANY
    return many and x_type.device == "cpu" and (x_type.dtype.is_floating or x_type.dtype in (DType.i32, DType.i64))


def _are_places(index: TensorType) -> bool:
    return index.rank == 1 and index.dtype in (DType.i32, DType.i64)


def _add_rows(
    x: torch.Tensor, indices: Sequence[torch.Tensor], values: torch.Tensor, accumulates: bool
) -> torch.Tensor:
    (index,) = indices
    places = torch.where(index < 0, index + x.shape[0], index)
    try:
        return x.index_add(0, places, values.expand(len(index), *x.shape[1:]))
    except RuntimeError:  # it is told by the op of the graph what is wrong
        said: torch.Tensor = torch.ops.aten.index_put.default(x, indices, values, accumulates)
        return said
