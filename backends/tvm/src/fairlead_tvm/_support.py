"""Whether the rules write a node: a look-up, and what each rule says that it declines."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fairlead.backend import Level, Support
from fairlead.interpret import quicker_in_bfloat16
from fairlead.ir import DType, Graph, Kind, Node, ScalarType, TensorType, Value, opset
from fairlead.passes import share_of_products
from fairlead_tvm._rules import rules

__all__ = ["declines", "supports"]

_DECLINED = {
    "aten.as_strided.default": "as_strided reads memory, whose beginning the node does not say",
    "aten.as_strided_scatter.default": "as_strided_scatter writes memory, whose beginning the node does not say",
}
_PRODUCTS = frozenset(
    {"nn.scaled_dot_product_attention", "nn.scaled_dot_product_attention_backward"}
    | {f"aten.{name}.default" for name in ("linear", "mm", "bmm", "addmm", "baddbmm")}
    | {f"aten.{name}.default" for name in ("convolution", "convolution_backward")}
)
_DATA_DEPENDENT = frozenset(
    f"aten.{name}"
    for name in (
        "nonzero.default", "masked_select.default", "unique_consecutive.default", "unique_dim.default",
        "_unique2.default", "_local_scalar_dense.default", "bincount.default",
    )
)  # fmt: skip


def supports(node: Node) -> Support:
    """Whether the rules can write this node exactly. A pure function of the node."""
    entry = rules().get(node.op)
    if entry is None:
        return _without_rule(node.op)
    if (count := _parameters(node.op)) not in (None, len(node.args)):
        return Support.no(f"{node.op} with {len(node.args)} arguments, not {count}")
    if any(d.is_complex for d in _dtypes(node)):
        return Support.no("complex numbers")
    reason = entry.unless(node) if entry.unless is not None else None
    return Support.yes() if reason is None else Support.no(reason)


_MOST = 1 / 3
"""The share of a graph's work in products that torch is quicker with, from which on the rest gains nothing any more.

In bfloat16 a Mamba, of which they are a quarter, takes 0.7 of eager's time, and a MobileNetV2, with a third, 1.2 times.
Where sizes vary a BERT takes 1.9 times, and a U-Net twice.
"""


def declines(graph: Graph) -> str | None:
    """Why a graph is better run by others.

    A step of training packs the factors of each product anew, and those of its gradients lie across.
    """
    if graph.kind in (Kind.forward, Kind.backward) and any(node.op in _PRODUCTS for node in graph.nodes):
        return "slower than eager here: training with products"
    if graph.symbols and share_of_products(graph, DType.f32) > _MOST:
        return "slower than eager here: products of sizes that vary"
    return quicker_in_bfloat16(graph, share=_MOST)


def _without_rule(op: str) -> Support:
    if op in _DECLINED:
        return Support.no(_DECLINED[op])
    if op in _DATA_DEPENDENT:
        return Support.no("the size of the result depends on the values of the operand")
    return Support.no(f"{op} has no rule for TVM", Level.PLANNED)


@functools.cache
def _parameters(op: str) -> int | None:
    """How many arguments a node of the op takes; None for an op that is not in the opset."""
    spec = opset.spec(op)
    return None if spec is None else len(opset.signature(spec.signature).parameters)


def _dtypes(node: Node) -> Iterator[DType]:
    values: list[Value] = [*node.operands(), *(r for r in node.results if r is not None)]
    for value in values:
        match value.type:
            case TensorType(dtype=dtype) | ScalarType(dtype=dtype):
                yield dtype
