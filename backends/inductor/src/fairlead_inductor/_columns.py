"""Products whose results would lie with gaps between rows, for callers that see rows without.

Inductor pads a weight of 50,257 columns to 50,264, a width that the device's kernels are quick with, and takes a part
of the result, whose rows a kernel then copies together. Kernels for float32 are as quick with any width. Of halves, a
large result is made in place, in bands of columns; of a small one, the columns up to the last multiple of that width
need no copy of the weight, nor do the few beyond it, and the kernel that copies rows together takes both.
"""

from __future__ import annotations

from typing import Any

import torch

from fairlead_inductor import _bands

__all__ = ["call", "join_columns"]

_aten = torch.ops.aten

_QUICK = 16
"""Bytes of which the width of a row is to be a multiple, as in torch/_inductor/fx_passes/pad_mm.py."""


_MANY, _MANY_TO_CALL = 2**24, 2**27
"""The numbers from which a result is made in bands: where that is recorded, and where kernels are called one by one."""


def join_columns(part: torch.fx.Node, *, is_recorded: bool) -> None:
    """Put products in the place of the ``part`` of a padded product that is wanted; leave any other node."""
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
        if _is_quick_anyhow(wide.dtype):
            joined = call(_aten.mm.default, x, weight)
        elif part.meta["val"].numel() >= (_MANY if is_recorded else _MANY_TO_CALL) and _takes(x, weight):
            joined = call(_bands.OP, x, weight)
        else:
            joined = _joined(x, weight, whole, width)
    part.replace_all_uses_with(joined)
    for gone in (part, product, padded):
        if not gone.users:
            part.graph.erase_node(gone)


def _is_quick_anyhow(dtype: torch.dtype) -> bool:
    """Whether products are in float32, and not in the TF32 of matrix units."""
    try:
        return dtype is torch.float32 and torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # torch has no word for how it is set
        return False


def _takes(x: Any, weight: Any) -> bool:
    return _bands.takes(x.meta["val"], weight.meta["val"])


def _joined(x: Any, weight: Any, whole: int, width: int) -> torch.fx.Node:
    most = call(_aten.mm.default, x, call(_aten.slice.Tensor, weight, 1, 0, whole))
    rest = call(_aten.mm.default, x, call(_aten.slice.Tensor, weight, 1, whole, width))
    spread = call(_aten.constant_pad_nd.default, most, [0, width - whole])
    return call(_aten.slice_scatter.default, spread, rest, 1, whole, width)


def call(op: Any, node: Any, *args: Any, **how: Any) -> torch.fx.Node:
    """A new node of the graph, and what is known of its result."""
    called: torch.fx.Node = node.graph.call_function(op, (node, *args), how)
    known = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in (node, *args)]
    called.meta["val"] = op(*known, **how)
    return called
