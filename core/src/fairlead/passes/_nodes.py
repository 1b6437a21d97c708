"""What rules ask of a node, and how they answer."""

from __future__ import annotations

from fairlead.ir import Argument, DimExpr, Node, Value, dims
from fairlead.passes._rewrite import Emitter, Replacement


def shape_argument(shape: tuple[dims.Dim, ...]) -> tuple[Argument, ...]:
    """A shape as an argument: integers, and expressions where it depends on symbols."""
    return tuple(d if isinstance(d, int) else DimExpr(d) for d in shape)


def operand(node: Node, index: int = 0) -> Value:
    """An argument that is a tensor by the op's signature."""
    value = node.args[index]
    if not isinstance(value, Value):
        raise TypeError(f"argument {index} of {node.op} is no value")
    return value


def number(node: Node, index: int) -> float:
    """An argument that is a number by the op's signature."""
    value = node.args[index]
    if not isinstance(value, int | float):
        raise TypeError(f"argument {index} of {node.op} is no number")
    return value


def logical_same(node: Node) -> bool:
    """Whether the result has the dtype, shape and device of the operand; its strides may be others."""
    old, new = operand(node).tensor, node.result.tensor
    return (old.dtype, old.shape, old.device) == (new.dtype, new.shape, new.device)


def unless_equal(node: Node, emit: Emitter, op: str, args: tuple[Argument, ...]) -> Replacement | None:
    """This op with these arguments in place of the node, unless the node is just that."""
    return None if (node.op, node.args) == (op, args) else (emit(op, args, node.result.type),)
