"""Writes one node by its rule, and what needs none."""

from __future__ import annotations

from fairlead.ir import DType, Node, Value
from fairlead_onnx._call import Call
from fairlead_onnx._rules import RULES
from fairlead_onnx._writer import Ref, Writer, computed

__all__ = ["has_elements", "write"]


def write(node: Node, writer: Writer, values: dict[int, Ref]) -> None:
    """Write one node, and enter its results among the values."""
    writer.half = _half(node)
    written = RULES[node.op](Call(node, writer, values)) if has_elements(node) else _empty(node, writer)
    refs = (written,) if isinstance(written, Ref) else written
    for result, ref in zip(node.results, refs, strict=True):
        if result is not None:
            assert ref is not None, f"the rule of {node.op} leaves out a result that is used"
            values[result.id] = writer.cast(ref, computed(result.tensor.dtype))


_PRODUCTS = frozenset(
    {
        *("aten.linear.default", "aten.mm.default", "aten.bmm.default", "aten.addmm.default", "aten.baddbmm.default"),
        *("aten.mv.default", "aten.dot.default", "aten.convolution.default"),
    }
)
"""Ops that torch computes in halves. Attention is none: its own kernels keep scores in f32."""


def _half(node: Node) -> DType | None:
    """The half type that a product is computed in, None for other ops and types."""
    if node.op not in _PRODUCTS:
        return None
    dtype = node.result.tensor.dtype
    return None if computed(dtype) is dtype else dtype


def has_elements(node: Node) -> bool:
    """Whether a result has elements; nodes without need no rule."""
    return any(r is not None and 0 not in r.tensor.shape for r in node.results)


def _empty(node: Node, writer: Writer) -> tuple[Ref | None, ...]:
    """Results of no elements, which need no rule."""
    return tuple(None if r is None else _nothing(writer, r) for r in node.results)


def _nothing(writer: Writer, value: Value) -> Ref:
    type_ = value.tensor
    if not type_.is_static:
        return writer.op("Expand", writer.number(0, computed(type_.dtype)), writer.shape(type_.shape))
    return writer.const((), computed(type_.dtype), tuple(d for d in type_.shape if isinstance(d, int)))
