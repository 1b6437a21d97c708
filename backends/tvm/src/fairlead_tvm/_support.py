"""Whether the rules write a node: a look-up, and what each rule says that it declines."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fairlead.backend import Level, Support
from fairlead.interpret import quicker_in_bfloat16
from fairlead.ir import DType, Graph, Node, ScalarType, TensorType, Value, opset
from fairlead.passes import trains_convolutions
from fairlead_tvm._rules import rules

__all__ = ["declines", "supports"]

_DECLINED = {
    "aten.as_strided.default": "as_strided reads memory, whose beginning the node does not say",
    "aten.as_strided_scatter.default": "as_strided_scatter writes memory, whose beginning the node does not say",
}
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

With products from torch a Mamba, of which they are a quarter, took 0.7 of eager's time in bfloat16, and a MobileNetV2,
with a third, 1.2 times.
"""

_MOST_CONVOLUTIONS = 1 / 4
"""The share of a training graph's work in convolutions, whose gradients are torch's, that is worth the turns.

With 0.14 a ConvNeXt gains.
"""


def declines(graph: Graph) -> str | None:
    """Why a graph is better run by others."""
    return trains_convolutions(graph, share=_MOST_CONVOLUTIONS) or quicker_in_bfloat16(graph, share=_MOST)


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
