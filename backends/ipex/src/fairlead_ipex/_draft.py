"""A graph as a module of torch's ops with its constants in it, to be rewritten in place."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import fx

from fairlead.interpret import adding_rows, to_fx
from fairlead.ir import Graph, TensorType, Value

__all__ = ["Draft", "op_of", "type_of"]


class Draft:
    """The module, and the tensors that are the same at every call.

    ``constants``: by the index of the graph's input. They are no inputs of the module; ``hold`` is how its nodes read
    them, and what was made of them.
    """

    def __init__(self, graph: Graph, constants: Mapping[int, torch.Tensor]) -> None:
        self.module = to_fx(graph)
        self.graph = self.module.graph
        self._known: dict[fx.Node, torch.Tensor | None] = {}
        self._constants: list[fx.Node] = []
        self._held = 0
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        for i, (node, item) in enumerate(zip(inputs, graph.inputs, strict=True)):
            node.meta["value"] = item.value
            if i in constants:
                self._known[node] = constants[i].detach()
                self._constants.append(node)

    def value(self, node: object) -> torch.Tensor | None:
        """The tensor of a node that constants alone determine, otherwise None."""
        if not isinstance(node, fx.Node):
            return None
        if node not in self._known:
            self._known[node] = self._computed(node)
        return self._known[node]

    def hold(self, tensor: torch.Tensor) -> fx.Node:
        """A node for a tensor, before the node that is about to be inserted."""
        name = f"held_{self._held}"
        self._held += 1
        setattr(self.module, name, tensor)
        return self.graph.create_node("get_attr", name)

    def finish(self) -> fx.GraphModule:
        """The module, without its constants among its inputs and without what nothing reads."""
        self.graph.eliminate_dead_code()
        for node in self._constants:
            if node.users and (tensor := self._known[node]) is not None:
                with self.graph.inserting_before(_first_after_inputs(self.graph)):
                    node.replace_all_uses_with(self.hold(tensor))
            self.graph.erase_node(node)
        self.graph.lint()
        adding_rows(self.module)
        return self.module

    def taking_all(self) -> fx.GraphModule:
        """The module with all inputs of the graph, constants among them, for a compiler."""
        self.graph.eliminate_dead_code()
        self.graph.lint()
        self.module.recompile()
        return self.module

    def _computed(self, node: fx.Node) -> torch.Tensor | None:
        inputs = node.all_input_nodes
        if not isinstance(node.target, torch._ops.OpOverload) or not inputs or op_of(node) is None:
            return None
        if any(self.value(i) is None for i in inputs):
            return None
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: self._known[n])
        made = node.target(*args, **kwargs)
        return made if isinstance(made, torch.Tensor) else None


def op_of(node: object) -> str | None:
    """The op of the IR that a node of the module runs; None for what only belongs to one."""
    made_from = node.meta.get("node") if isinstance(node, fx.Node) else None
    return None if made_from is None else made_from.op


def type_of(node: object) -> TensorType | None:
    """The type of the tensor that a node gives, where it gives one."""
    value = node.meta.get("value") if isinstance(node, fx.Node) else None
    return value.type if isinstance(value, Value) and isinstance(value.type, TensorType) else None


def _first_after_inputs(graph: fx.Graph) -> fx.Node:
    found: fx.Node = next(n for n in graph.nodes if n.op != "placeholder")
    return found
