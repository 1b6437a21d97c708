"""Whether a graph is worth taking turns for, between torch and a backend with threads of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairlead.ir import Graph, Node, TensorType, Value, dims
from fairlead.partition import Assignment, split
from fairlead.passes import is_view
from fairlead.placement import Why

__all__ = ["taking_turns"]

_MOST = 1 / 4
"""The share of a graph's work that torch may have before the rest is its as well.

On two cores, a GraphSAGE of whose work 28 % is adding rows takes ONNX Runtime up to 2 times eager's time beside torch,
and a Mixtral with 50 % in products of experts takes XLA 1.15 times; ONNX Runtime, which has those, 0.6 times.
"""

_FEW = 2**17
"""So few numbers torch computes with on one thread."""

_PER_NUMBER = 64
"""Reading or writing one number takes as long as so many multiplications of a product."""

_TYPICAL_SIZE = 32
"""What a size is taken for that is known only at the call."""

_TERMS = {  # the operand of which each result has one term for each number but those of the first dimension, or last
    "aten.linear.default": 1,
    "aten.convolution.default": 1,
    "aten.mm.default": 0,
    "aten.bmm.default": 0,
    "aten.addmm.default": 1,
    "aten.baddbmm.default": 1,
    "aten.convolution_backward.default": 2,
}
_GRADIENTS = "aten.convolution_backward.default"
_WEIGHTED = frozenset({"aten.linear.default", "aten.convolution.default", _GRADIENTS})


def taking_turns(graph: Graph, assignment: Assignment, first: str) -> str | None:
    """Why ``first`` had better leave all of a graph on the CPU to others; None where it is worth its turns.

    After a parallel loop torch's threads look out for the next one, and keep from the cores whoever computes on threads
    of its own in between, and the other way round.
    """
    others = [n for n, placed in zip(graph.nodes, assignment.nodes, strict=True) if placed.why is Why.declined]
    if not others or not all(map(_is_of_cpu, graph.nodes)):
        return None
    sizes = {s.name: max(_TYPICAL_SIZE, s.lo) for s in graph.symbols}
    total = sum(_work(node, sizes) for node in graph.nodes)
    declined = sum(_work(node, sizes) for node in others)
    if declined <= max(_FEW, total * _MOST) or _turns(graph, assignment.backends, first) < 2:
        return None
    most = sorted({node.op: _work(node, sizes) for node in others}.items(), key=lambda item: -item[1])
    ops = " and ".join(op for op, _ in most[:2])
    return f"slower than eager here: {declined / total:.0%} of it is torch's, {ops}, with threads in each other's way"


def _turns(graph: Graph, backends: Sequence[str], first: str) -> int:
    return sum(part.backend == first for part in split(graph, [name or "eager" for name in backends], first))


def _work(node: Node, sizes: Mapping[str, int]) -> float:
    """How many numbers a node reads and writes, and what its multiplications come to in them."""
    if is_view(node.op):
        return 0.0
    results = [r for r in node.results if r is not None]
    numbers = float(sum(_size(v, sizes) for v in (*node.operands(), *results)))
    if node.op not in _TERMS:
        return numbers
    factor = node.args[_TERMS[node.op]]
    assert isinstance(factor, Value)
    shape = factor.tensor.shape
    terms = _product(shape[1:] if node.op in _WEIGHTED else shape[-1:], sizes)
    if node.op == _GRADIENTS:
        gradient = node.args[0]
        assert isinstance(gradient, Value)
        products = _size(gradient, sizes) * sum(r is not None for r in node.results[:2])
    else:
        products = sum(_size(r, sizes) for r in results[:1])
    return numbers + products * terms / _PER_NUMBER


def _is_of_cpu(node: Node) -> bool:
    values = (*node.operands(), *(r for r in node.results if r is not None))
    return all(v.type.device == "cpu" for v in values if isinstance(v.type, TensorType))


def _size(value: Value, sizes: Mapping[str, int]) -> int:
    return _product(value.type.shape, sizes) if isinstance(value.type, TensorType) else 0


def _product(shape: Sequence[int | str], sizes: Mapping[str, int]) -> int:
    return math.prod(dims.evaluate(d, sizes) for d in shape)
