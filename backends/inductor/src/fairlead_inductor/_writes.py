"""What a graph writes to its inputs, written by the generated code itself, fused with what computes it.

That saves the memory of the new values and a kernel that copies them: of a batch norm's statistics, of a cache's rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from fairlead.interpret import picking
from fairlead.ir import Graph, Node, Role, Value
from fairlead.passes import is_view

__all__ = ["Writes"]


class Writes:
    """The outputs of a graph that are but written to inputs, where the order of writes and reads is not to be told.

    That is where what is written is computed, of nothing else that is written, and no other output shows the input.
    Between two that read one another's inputs Inductor loses the order where it finds that a copy is superfluous.
    ``only``: the inputs that may be written.
    """

    def __init__(self, graph: Graph, only: Collection[int] | None = None) -> None:
        targets = {k: o.target for k, o in enumerate(graph.outputs) if o.role is Role.mutation and o.target is not None}
        shown, read = _shown(graph), _read(graph, sorted(targets.values()))
        others = {shown.get(o.value.id) for o in graph.outputs if isinstance(o.value, Value)}
        self.places: Mapping[int, int] = {
            k: target
            for k, target in targets.items()
            if (only is None or target in only)
            and graph.inputs[target].value.id not in others
            and isinstance(value := graph.outputs[k].value, Value)
            and value.id not in shown
            and value.type == graph.inputs[target].value.type
            and read[value.id] <= {target}
        }
        """For each of these outputs the input."""
        left = (k for k in range(len(graph.outputs)) if k not in self.places)
        found = {k: i for i, k in enumerate((*self.places, *left))}
        self._ordered = picking([found[k] for k in range(len(graph.outputs))])
        self._targets = picking(list(self.places.values()))

    def within(self, module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """The module, changed in place, that writes them last and returns the others."""
        if not self.places:
            return module
        inputs = module.graph.find_nodes(op="placeholder", sort=True)
        output = module.graph.output_node()
        results: Sequence[Any] = output.args[0]  # type: ignore[assignment]
        with module.graph.inserting_before(output):
            for place, target in self.places.items():
                module.graph.call_function(torch.ops.aten.copy_.default, (inputs[target], results[place]))
        output.args = (tuple(result for k, result in enumerate(results) if k not in self.places),)
        module.recompile()
        return module

    def written(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The inputs that the module writes, in the order of the outputs that they stand for."""
        return self._targets(inputs)

    def with_inputs(self, results: Sequence[Any], written: Sequence[Any]) -> Sequence[Any]:
        """All results of the graph, of those of the module and the inputs that it has written."""
        if not self.places:
            return results
        return self._ordered([*written, *results])


def _shown(graph: Graph) -> dict[int, int]:
    """By its id, each value that is an input or a view of one, and that input's id."""
    found = {item.value.id: item.value.id for item in graph.inputs}
    for node in graph.nodes:
        root = next((found[v.id] for v in node.operands() if v.id in found), None)
        if root is not None and is_view(node.op):
            found.update((r.id, root) for r in node.results if r is not None)
    return found


def _read(graph: Graph, inputs: Sequence[int]) -> dict[int, frozenset[int]]:
    """By the id of each value, those of these inputs that it is computed of."""
    nothing = frozenset[int]()
    found = {item.value.id: nothing for item in graph.inputs}
    found.update((graph.inputs[i].value.id, frozenset((i,))) for i in inputs)
    for node in graph.nodes:
        of_node = nothing.union(*(found[v.id] for v in node.operands()))
        left_out = _STATISTICS if _is_norm_in_training(node) else {}
        for k, result in enumerate(node.results):
            if result is not None:
                found[result.id] = of_node.difference(*(found[v.id] for v in _values(node, left_out.get(k, ()))))
    return found


_NORMS = ("aten._native_batch_norm_legit_functional.default", "aten._batch_norm_with_update_functional.default")

_STATISTICS: Mapping[int, Sequence[int]] = {0: (3, 4), 1: (3, 4), 2: (3, 4), 3: (4,), 4: (3,), 5: (3, 4)}
"""Of a batch norm's results, in training, which of the running mean and variance each is not computed of."""


def _is_norm_in_training(node: Node) -> bool:
    return node.op in _NORMS and (node.op != _NORMS[0] or node.args[5] is True)


def _values(node: Node, places: Sequence[int]) -> list[Value]:
    return [arg for place in places if isinstance(arg := node.args[place], Value)]
