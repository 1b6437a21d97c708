"""What a program writes to its inputs: computed by a functional graph, and written when all of it is there.

AOTAutograd leaves such writes at the end of the graphs that it makes. Taken out of them they are the first results of a
graph that writes nothing, so that a call that fails has changed nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

from fairlead.interpret import overwrite, picking

__all__ = ["Writes", "taken_out"]

_copy = torch.ops.aten.copy_.default


class Writes(NamedTuple):
    """A graph without its writes to inputs, and the indices of the inputs to which its first outputs belong."""

    gm: GraphModule
    targets: tuple[int, ...]

    def around(self, run: Callable[[list[Any]], Any], hidden: Collection[int]) -> Callable[[list[Any]], Any]:
        """The callable with the writes after it. Autograd is not told of those to the inputs that are ``hidden``."""
        targets = self.targets
        if not targets:
            return run
        written_to = picking(targets)
        out_of_sight = [place for place, index in enumerate(targets) if index in hidden]

        def written(args: list[Any]) -> Any:
            given = list(written_to(args))
            results = run(args)
            if any(map(operator.is_not, given, results)):  # or a backend has written them itself
                left = [place for place, target in enumerate(given) if results[place] is not target]
                for place in out_of_sight:
                    given[place] = given[place].data
                overwrite([given[place] for place in left], [results[place] for place in left])
            return results[len(given) :]

        written._boxed_call = True  # type: ignore[attr-defined]
        return written


def taken_out(gm: GraphModule) -> Writes:
    """The graph with what it writes to its inputs for its first outputs; the same where it writes to none."""
    inputs = {node: index for index, node in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
    writes = {n: n.args for n in gm.graph.find_nodes(op="call_function", target=_copy) if n.args[0] in inputs}
    if not writes:
        return Writes(gm, ())
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node in writes:
            copies[node] = copies[writes[node][1]]
        elif node.op != "output":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    outputs: Any = gm.graph.output_node().args[0]
    values = (*(source for _, source in writes.values()), *outputs)
    graph.output(tuple(copies[v] if isinstance(v, Node) else v for v in values))
    return Writes(GraphModule(gm, graph), tuple(inputs[target] for target, _ in writes.values()))
