"""Products whose results would lie with gaps between rows, for callers that see rows without.

Inductor pads a weight of 50,257 columns to 50,264, a width that the device's kernels are quick with, and takes a part
of the result, whose rows a kernel then copies together. As quick are the columns up to the last multiple of that width,
which need no copy of the weight, and the few beyond it; the kernel that copies rows together takes both.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["call", "join_columns"]

_aten = torch.ops.aten

_QUICK = 16
"""Bytes of which the width of a row is to be a multiple, as in torch/_inductor/fx_passes/pad_mm.py."""


def join_columns(part: torch.fx.Node) -> None:
    """Put two products in the place of the ``part`` of a padded product that is wanted; leave any other node."""
    product = part.args[0] if part.target is _aten.slice.Tensor else None
    if not isinstance(product, torch.fx.Node) or product.target is not _aten.mm.default:
        return
    x, padded = product.args
    assert isinstance(padded, torch.fx.Node), "a product is of two tensors"
    if padded.target is not _aten.constant_pad_nd.default:
        return
    weight, pads, *_ = padded.args
    wide, width = padded.meta["val"], part.meta["val"].shape[1]
    count, whole = wide.shape[1] - width, wide.shape[1] - _QUICK // wide.element_size()
    if pads != [0, count, 0, 0] or part.args[1:] != (1, 0, -count) or not 0 < whole < width:
        return
    with part.graph.inserting_before(part):
        most = call(_aten.mm.default, x, call(_aten.slice.Tensor, weight, 1, 0, whole))
        rest = call(_aten.mm.default, x, call(_aten.slice.Tensor, weight, 1, whole, width))
        spread = call(_aten.constant_pad_nd.default, most, [0, width - whole])
        joined = call(_aten.slice_scatter.default, spread, rest, 1, whole, width)
    part.replace_all_uses_with(joined)
    for gone in (part, product, padded):
        if not gone.users:
            part.graph.erase_node(gone)


def call(op: Any, node: Any, *args: Any, **how: Any) -> torch.fx.Node:
    """A new node of the graph, and what is known of its result."""
    called: torch.fx.Node = node.graph.call_function(op, (node, *args), how)
    known = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in (node, *args)]
    called.meta["val"] = op(*known, **how)
    return called
