"""Nodes that the lowering can write and OpenVINO's CPU plugin gets wrong."""

from __future__ import annotations

from fairlead.ir import DType, Node, TensorType, Value

__all__ = ["refusal"]

_GROWING = frozenset(
    {
        "aten.mul.Tensor",
        "aten.pow.Tensor_Tensor",
        "aten.pow.Tensor_Scalar",
        "aten.prod.dim_int",
        "aten.prod.default",
        "aten.scatter.reduce",
        "aten.scatter_add.default",
        "aten.scatter_reduce.two",
    }
)
_CONVERTING = frozenset({"aten._to_copy.default", "prims.convert_element_type.default"})
_WITHOUT_REFERENCE = frozenset(
    {
        "aten._unsafe_index.Tensor",
        "aten.bitwise_and.Tensor",
        "aten.bitwise_not.default",
        "aten.bitwise_or.Tensor",
        "aten.bitwise_xor.Tensor",
        "aten.diagonal.default",
        "aten.gather.default",
        "aten.masked_scatter.default",
    }
)
"""Ops that only the CPU plugin has: where an input is too large for it, nothing else of OpenVINO computes them."""

_COUNTING = frozenset({"aten.sum.dim_IntList", "aten.sum.default", "aten.cumsum.default"})


def refusal(node: Node) -> str | None:
    """Why OpenVINO would compute this node wrongly, or None."""
    return _of_doubles(node) or _wide_integers(node) or _ragged_gather(node) or _wide_state(node)


def _of_doubles(node: Node) -> str | None:
    """Numbers of f64 come as f32, which is not enough where they are made integers or truth values of."""
    if node.op not in _CONVERTING or _dtype(node.args[0]) is not DType.f64:
        return None
    is_rounded = all(r is None or r.tensor.dtype.is_floating for r in node.results)
    return None if is_rounded else "OpenVINO does not compute in f64"


def _wide_integers(node: Node) -> str | None:
    """The CPU plugin keeps i64 in 32 bits.

    Indices, sizes and masks fit, and calls with larger inputs take another way; products, and what floats hold, may
    not.
    """
    first = next((r for r in node.results if r is not None), None)
    if first is None or first.tensor.dtype is not DType.i64:
        return None
    source = _dtype(node.args[0]) if node.args else None
    if node.op in _CONVERTING and source is not None and source.is_floating:
        return "OpenVINO computes 64-bit integers in 32 bits"
    counts = node.op in _COUNTING and _dtype(node.args[0]) is not DType.bool
    return (
        "OpenVINO computes 64-bit integers in 32 bits" if counts or node.op in _GROWING | _WITHOUT_REFERENCE else None
    )


def _ragged_gather(node: Node) -> str | None:
    if node.op != "aten.gather.default":
        return None
    x, dim, index = node.args[0], node.args[1], node.args[2]
    if not (isinstance(x, Value) and isinstance(index, Value) and isinstance(dim, int)):
        return None
    rank = max(x.tensor.rank, 1)
    pairs = enumerate(zip(x.tensor.shape, index.tensor.shape, strict=False))
    if any(a != b for i, (a, b) in pairs if i != dim % rank):
        return "OpenVINO's GatherElements needs an index as large as the operand in every other dimension"
    return None


def _wide_state(node: Node) -> str | None:
    """A loop may add to what it carries without end, which nothing bounds."""
    if node.op != "hop.while_loop":
        return None
    carried = node.args[0]
    assert isinstance(carried, tuple)
    is_wide = any(not isinstance(v, Value) or _dtype(v) in (None, DType.i64) for v in carried)
    return "OpenVINO computes 64-bit integers in 32 bits, also those that a loop carries" if is_wide else None


def _dtype(arg: object) -> DType | None:
    return arg.type.dtype if isinstance(arg, Value) and isinstance(arg.type, TensorType) else None
