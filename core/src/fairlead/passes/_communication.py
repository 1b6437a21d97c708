"""Communication between processes: which nodes take part in it."""

from __future__ import annotations

from fairlead.ir import Node

_NAMESPACES = ("_c10d_functional", "_dtensor")

WAIT = "_c10d_functional.wait_tensor.default"
"""The op that gives the result of a collective once it is there."""


def is_collective(op: str) -> bool:
    """Whether an op communicates with other processes, or waits for what they send.

    >>> is_collective("_c10d_functional.all_reduce.default"), is_collective("aten.add.Tensor")
    (True, False)
    """
    return op.partition(".")[0] in _NAMESPACES


def communicates(node: Node) -> bool:
    """Whether a node is a collective, or one of its regions has one.

    Such nodes run once each, in the order of the program and whether or not something reads their results, since other
    processes count on their part.
    """
    return is_collective(node.op) or any(communicates(n) for region in node.regions for n in region.nodes)
