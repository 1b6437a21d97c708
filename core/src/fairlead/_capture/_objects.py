"""Objects that torch hands through a graph beside its tensors, such as the mesh of devices of a DTensor.

The IR has no word for them and nothing is computed with them: they go around the graph.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode

from fairlead._capture._order import Arrangement
from fairlead._capture._torch import Mutations
from fairlead.interpret import picking

__all__ = ["Bypass", "bypass"]

_KNOWN = (torch.Tensor, int, float, torch.SymInt, torch.SymFloat, torch.SymBool, type(None))


class Bypass(NamedTuple):
    """A graph without the objects that torch hands through it, and how torch's call fits it.

    ``inputs`` and ``outputs`` are the indices of torch's that the graph has, None for an output that torch does not
    have. Of the others of torch's ``total`` outputs, those in ``handed`` are the input with that index, those in
    ``held`` an object that torch's graph holds itself, and the rest None.
    """

    gm: torch.fx.GraphModule
    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]
    handed: Mapping[int, int]
    held: Mapping[int, Any]
    total: int

    @property
    def is_identity(self) -> bool:
        """Whether torch's call fits as it is."""
        return self.outputs == tuple(range(self.total)) and self.inputs == tuple(range(len(self.inputs)))

    def mutations(self, known: Mutations) -> Mutations:
        """What AOTAutograd knows of its graph's outputs, for this graph."""
        at = {old: new for new, old in enumerate(self.inputs)}
        first = len(known.targets)
        aliases = enumerate(known.user_aliases, start=first)
        return Mutations(
            tuple(at[target] for target in known.targets),
            tuple(None if base is None else at[base] for place, base in aliases if place in self.outputs),
        )

    def around(self, run: Callable[[list[Any]], Any], fit: Arrangement | None = None) -> Callable[[list[Any]], Any]:
        """The callable as torch calls it, of one that takes and gives what the graph does, or ``fit`` has of that.

        Hundreds of tensors go through here in each step of training: each is picked once on the way in, and once out.
        """
        if self.is_identity and (fit is None or fit.is_identity):
            return run
        taken = range(len(self.inputs)) if fit is None else fit.inputs
        made = range(len(self.outputs)) if fit is None else fit.outputs
        count = len(self.outputs) if fit is None else len(fit.graph.outputs)
        given, handed = picking([self.inputs[i] for i in taken]), picking(list(self.handed.values()))
        others = (None, *self.held.values())
        at: dict[int | None, int] = dict(zip((*self.handed, None, *self.held), itertools.count(count), strict=False))
        at |= {place: k for place, k in zip(self.outputs, made, strict=True) if place is not None}
        order = [at.get(place, at[None]) for place in range(self.total)]
        is_all_computed = all(k < count for k in order)
        ordered = picking(order)

        def call(args: list[Any]) -> Any:
            inputs, passed = list(given(args)), handed(args)
            args.clear()
            results = run(inputs)
            return list(ordered(results if is_all_computed else [*results, *passed, *others]))

        call._boxed_call = True  # type: ignore[attr-defined]
        return call


def bypass(gm: torch.fx.GraphModule, outputs: Sequence[int | None] | None = None) -> Bypass:
    """The graph without the objects that nothing but outputs reads.

    It has these of torch's outputs, or all that are no such objects.
    """
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
    objects = {node: index for index, node in enumerate(inputs) if _is_handed_through(node)}
    made: Sequence[Any] = gm.graph.output_node().args[0]  # type: ignore[assignment]
    handed = {place: objects[o] for place, o in enumerate(made) if isinstance(o, FxNode) and o in objects}
    held = {place: _held(gm, o) for place, o in enumerate(made) if isinstance(o, FxNode) and _held(gm, o) is not None}
    if outputs is None:
        outputs = [place for place in range(len(made)) if place not in handed and place not in held]
    taken = tuple(index for index, node in enumerate(inputs) if node not in objects)
    found = Bypass(gm, taken, tuple(outputs), handed, held, len(made))
    if found.is_identity:
        return found
    left = _without(gm, objects, [None if place is None else made[place] for place in outputs])
    return found._replace(gm=torch.fx.GraphModule(gm, left))


def _is_handed_through(node: FxNode) -> bool:
    return not isinstance(node.meta.get("val"), _KNOWN) and all(user.op == "output" for user in node.users)


def _held(gm: torch.fx.GraphModule, node: FxNode) -> Any:
    """The object that an output of the graph is, where that is an attribute of the graph's and no tensor."""
    if node.op != "get_attr":
        return None
    found = operator.attrgetter(str(node.target))(gm)
    return None if isinstance(found, torch.Tensor) else found


def _without(gm: torch.fx.GraphModule, objects: Collection[FxNode], outputs: Sequence[Any]) -> FxGraph:
    graph = FxGraph()
    copies: dict[FxNode, FxNode] = {}
    for node in gm.graph.nodes:
        if node.op != "output" and node not in objects:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[o] if isinstance(o, FxNode) else o for o in outputs))
    return graph
