"""Element-wise ops that write over the memory of a result that nothing else reads."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from fairlead_ipex._draft import op_of, type_of
from fairlead_ipex._products import linear_by_convolution

__all__ = ["reuse_memory"]


def reuse_memory(graph: fx.Graph) -> None:
    """Before: any module. After: no element-wise op takes new memory whose operand gives up its own."""
    graph.eliminate_dead_code()  # what is left out of it reads nothing
    own: set[fx.Node] = set()
    """Nodes whose results have memory that no other value shares."""
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        op = (op_of(node) or "").removeprefix("aten.")
        if _is_product(node) or (op in _VIEWS and _only_reader(node.args[0], node, own)):
            own.add(node)
        elif op in _WRITTEN and isinstance(node.target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            _write_over(node, op, own)
            own.add(node)


def _is_product(node: fx.Node) -> bool:
    if node.target is linear_by_convolution:
        return True
    return isinstance(node.target, torch._ops.OpOverload) and node.target.namespace in _PRODUCTS


def _write_over(node: fx.Node, op: str, own: set[fx.Node]) -> None:
    first, *rest = node.args
    if op in _SYMMETRIC and not _may_write(first, node, own) and node.kwargs.get("alpha", 1) == 1:
        first, rest = rest[0], [first, *rest[1:]]
    if not _may_write(first, node, own):
        return
    name, _, overload = op.partition(".")
    written = getattr(torch.ops.aten, f"{name}_")
    node.args = (first, *rest)
    node.target = getattr(written, overload) if isinstance(node.target, torch._ops.OpOverload) else written


def _may_write(given: Any, node: fx.Node, own: set[fx.Node]) -> bool:
    mine, result = type_of(given), type_of(node)
    if mine is None or result is None or (mine.shape, mine.dtype) != (result.shape, result.dtype):
        return False
    return _only_reader(given, node, own) and sum(a is given for a in node.args) == 1


def _only_reader(given: Any, node: fx.Node, own: set[fx.Node]) -> bool:
    return given in own and list(given.users) == [node]


_PRODUCTS = ("mkl", "mkldnn")
"""The namespaces of packed products, whose results have memory of their own. Torch may be built without MKL."""

_VIEWS = frozenset({"view.default", "permute.default", "unsqueeze.default", "squeeze.dims"})

_SYMMETRIC = frozenset({"add.Tensor", "mul.Tensor"})

_WRITTEN = _SYMMETRIC | {
    "sub.Tensor",
    "div.Tensor",
    "relu.default",
    "gelu.default",
    "silu.default",
    "tanh.default",
    "sigmoid.default",
    "hardtanh.default",
    "hardswish.default",
    "hardsigmoid.default",
    "leaky_relu.default",
    "neg.default",
    "exp.default",
}
"""Element-wise ops that torch has in place as well, by the same name with an underscore."""
