"""Whether a graph is worth taking turns for, between torch and a backend with threads of its own."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.ir import Graph, Node, TensorType
from fairlead.partition import Assignment, split
from fairlead.passes import typical_sizes, work
from fairlead.placement import Why

__all__ = ["taking_turns"]

_MOST = 1 / 10
"""The share of a graph's work that torch may have before the rest is its as well.

On two cores, a GraphSAGE of whose work 28 % is adding rows takes ONNX Runtime up to 2 times eager's time beside torch,
and a Mixtral with 50 % in products of experts takes XLA 1.15 times; ONNX Runtime, which has those, 0.6 times. A DLRM's
training, of which bags of embeddings are 24 % forward and 14 % backward, takes 1.7 to 2.1 times, and that of a
wav2vec 2.0, of whose backward 12 % is a convolution's, XLA 1.25 times. Transformers, which gain, have 0 to 6 % in
gradients of embeddings and of a first convolution.
"""

_FEW = 2**17
"""So few numbers torch computes with on one thread."""


def taking_turns(graph: Graph, assignment: Assignment, first: str) -> str | None:
    """Why ``first`` had better leave all of a graph on the CPU to others; None where it is worth its turns.

    After a parallel loop torch's threads look out for the next one, and keep from the cores whoever computes on threads
    of its own in between, and the other way round.
    """
    others = [n for n, placed in zip(graph.nodes, assignment.nodes, strict=True) if placed.why is Why.declined]
    if not others or not all(map(_is_of_cpu, graph.nodes)):
        return None
    sizes = typical_sizes(graph)
    total = sum(work(node, sizes) for node in graph.nodes)
    declined = sum(work(node, sizes) for node in others)
    if declined <= max(_FEW, total * _MOST) or not _has_parts(graph, assignment.backends, first):
        return None
    most = sorted({node.op: work(node, sizes) for node in others}.items(), key=lambda item: -item[1])
    ops = " and ".join(op for op, _ in most[:2])
    return f"slower than eager here: {declined / total:.0%} of it is torch's, {ops}, with threads in each other's way"


def _has_parts(graph: Graph, backends: Sequence[str], first: str) -> bool:
    return any(part.backend == first for part in split(graph, [name or "eager" for name in backends], first))


def _is_of_cpu(node: Node) -> bool:
    values = (*node.operands(), *(r for r in node.results if r is not None))
    return all(v.type.device == "cpu" for v in values if isinstance(v.type, TensorType))
