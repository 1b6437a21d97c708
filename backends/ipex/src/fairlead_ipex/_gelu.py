"""The approximation of gelu by tanh, written out as some models do, as the one op that torch has for it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairlead.ir import Argument, Graph, Node, TensorType, Value
from fairlead.passes import Emitter, Replacement, remove_dead_nodes, rewrite

__all__ = ["recognize_gelu"]

_MUL, _ADD = "aten.mul.Tensor", "aten.add.Tensor"


def recognize_gelu(graph: Graph) -> Graph:
    """The graph with one node for each ``0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3)))``.

    Before: any graph. After: none of these is written out.
    """
    producers = graph.producers()

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        x = _argument(node, producers)
        return None if x is None else (emit("aten.gelu.default", (x, "tanh"), node.result.type),)

    return remove_dead_nodes(rewrite(graph, rule))


def _argument(node: Node, producers: Mapping[int, Node]) -> Value | None:
    """The x of which a product of two factors is the gelu; None where it is none."""
    if node.op != _MUL:
        return None
    for half, curve in (node.args[:2], node.args[1::-1]):
        x = _scaled(half, 0.5, producers)
        inner = _tanh(_shifted(curve, 1.0, producers), producers)
        if x is not None and _is_inner(inner, x, producers) and node.result.type == x.type:
            return x
    return None


def _is_inner(value: Value | None, x: Value, producers: Mapping[int, Node]) -> bool:
    """Whether a value is ``sqrt(2/pi) (x + 0.044715 x**3)``."""
    total = _made_by(_scaled(value, math.sqrt(2 / math.pi), producers), _ADD, producers)
    if total is None or total.args[2] != 1:
        return False
    first, second = total.args[:2]
    cube = second if first == x else first if second == x else None
    power = _made_by(_scaled(cube, 0.044715, producers), "aten.pow.Tensor_Scalar", producers)
    return power is not None and power.args[0] == x and power.args[1] == 3


def _scaled(value: Argument, number: float, producers: Mapping[int, Node]) -> Value | None:
    """What a value is a number times of."""
    node = _made_by(value, _MUL, producers)
    return None if node is None else _beside(node, number)


def _shifted(value: Argument, number: float, producers: Mapping[int, Node]) -> Value | None:
    """What a value is a number more than."""
    node = _made_by(value, _ADD, producers)
    return None if node is None or node.args[2] != 1 else _beside(node, number)


def _tanh(value: Argument, producers: Mapping[int, Node]) -> Value | None:
    node = _made_by(value, "aten.tanh.default", producers)
    found = None if node is None else node.args[0]
    return found if isinstance(found, Value) else None


def _beside(node: Node, number: float) -> Value | None:
    for value, other in (node.args[:2], node.args[1::-1]):
        if isinstance(value, Value) and isinstance(other, int | float) and math.isclose(other, number, rel_tol=1e-7):
            return value if isinstance(value.type, TensorType) and value.type.dtype.is_floating else None
    return None


def _made_by(value: Argument, op: str, producers: Mapping[int, Node]) -> Node | None:
    node = producers.get(value.id) if isinstance(value, Value) else None
    return node if node is not None and node.op == op else None
