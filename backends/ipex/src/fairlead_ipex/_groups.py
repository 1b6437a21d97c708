"""Products of rows with the matrix of their group, as of a mixture of experts: known matrices are packed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from fairlead.interpret import restride
from fairlead.ir import TensorType
from fairlead_ipex._draft import Draft, op_of, type_of
from fairlead_ipex._dtypes import TORCH, computed_in, in_dtype
from fairlead_ipex._options import IpexOptions
from fairlead_ipex._products import LEAST_ROWS

__all__ = ["GROUPED", "pack_groups"]

GROUPED = frozenset({"aten._grouped_mm.default", "transformers.grouped_mm_fallback.default"})

_LEAST_WEIGHTS = 2**16
"""A call of oneDNN's op takes as long as torch's product of so few weights."""


def pack_groups(draft: Draft, options: IpexOptions) -> None:
    """Before: a module of ATen's ops. After: products of groups with known matrices read packed ones."""
    if options.products == "mkl":
        return
    for node in list(draft.graph.nodes):
        product = _product(draft, node) if op_of(node) in GROUPED else None
        if product is not None:
            _pack(draft, node, product)


class _Product(NamedTuple):
    """``matrices``: ``[groups, inner, columns]``. ``ends``: the row behind the last of each group."""

    x: fx.Node
    matrices: torch.Tensor
    ends: fx.Node
    given: TensorType


def _product(draft: Draft, node: fx.Node) -> _Product | None:
    """What a node multiplies, where the matrices are known and there are enough rows for each to pay."""
    x, weight, ends = map(_as_it_comes, node.args[:3])
    given, found = type_of(x), draft.value(weight)
    if found is None or found.dim() != 3 or given is None or len(given.shape) != 2:
        return None
    if not isinstance(x, fx.Node) or not isinstance(ends, fx.Node):
        return None
    if any(a is not None for a in (*node.args[3:], *node.kwargs.values())):
        return None
    if computed_in(given.dtype) is None or not _has_work(found, given):
        return None
    return _Product(x, found, ends, given)


def _as_it_comes(arg: Any) -> Any:
    """A value that torch's op wants to lie in memory in one way: the op here reads any."""
    return arg.args[0] if isinstance(arg, fx.Node) and arg.target is restride else arg


def _has_work(matrices: torch.Tensor, given: TensorType) -> bool:
    groups, inner, columns = matrices.shape
    rows = given.shape[0]
    return inner * columns >= _LEAST_WEIGHTS and (not isinstance(rows, int) or rows >= LEAST_ROWS * groups)


def _pack(draft: Draft, node: fx.Node, product: _Product) -> None:
    given, computed = TORCH[product.given.dtype], computed_in(product.given.dtype)
    groups, rows = len(product.matrices), product.given.shape[0]
    weights = product.matrices.to(computed).transpose(1, 2)
    each = rows // groups if isinstance(rows, int) else None
    packed = [torch.ops.mkldnn._reorder_linear_weight(w.contiguous(), each) for w in weights]
    with draft.graph.inserting_before(node):
        x = in_dtype(draft, product.x, given, weights.dtype)
        made = draft.graph.call_function(_OP, (x, [draft.hold(w) for w in packed], product.ends))
        made = in_dtype(draft, made, weights.dtype, given)
    made.meta["value"] = node.meta["value"]
    node.replace_all_uses_with(made)


def _products(x: torch.Tensor, weights: Sequence[torch.Tensor], ends: torch.Tensor) -> torch.Tensor:
    """Rows from one end to the next by the packed weight of their group; zeros behind the last, as transformers has."""
    multiply = torch.ops.mkldnn._linear_pointwise.default
    made, first = [], 0
    for weight, end in zip(weights, ends.tolist(), strict=True):
        if end > first:
            made.append(multiply(x[first:end], weight, None, "none", [], ""))
            first = end
    if first < len(x):
        made.append(x.new_zeros(len(x) - first, weights[0].shape[0]))
    return torch.cat(made) if made else x.new_empty(0, weights[0].shape[0])


_op = torch.library.custom_op("fairlead_ipex::products_of_groups", _products, mutates_args=())


@_op.register_fake
def _of_fakes(x: torch.Tensor, weights: Sequence[torch.Tensor], ends: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[0], weights[0].shape[0])


_OP = torch.ops.fairlead_ipex.products_of_groups.default
