"""Two graphs of Dynamo's as one: a loss, its gradients, and the update of an optimizer that takes them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.amp.autocast_mode import _enter_autocast, _exit_autocast
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode

from fairlead._capture._torch import InputSource, input_sources

__all__ = ["OtherGradients", "Traced", "WholeStep", "loss_of", "marked", "whole_step"]


class OtherGradients(Exception):
    """The loss depends on other weights than those that an update was traced for; ``used`` are their places."""

    def __init__(self, used: tuple[int, ...]) -> None:
        super().__init__(f"the loss depends on {len(used)} weights")
        self.used = used


class Traced(NamedTuple):
    """A graph of Dynamo's, and what it is called with."""

    gm: torch.fx.GraphModule
    inputs: Sequence[Any]


class WholeStep(NamedTuple):
    """A loss, its gradients and an update as one graph.

    Its inputs are those of the loss, then the ``fixed`` tensors, then those of the inputs of the update that have the
    places ``passed``. Of the loss's inputs, those in ``shared`` have to be the tensors that the update writes to. Its
    first ``results`` outputs are the loss's, the others the update's.
    """

    gm: torch.fx.GraphModule
    fixed: tuple[torch.Tensor, ...]
    passed: tuple[int, ...]
    shared: tuple[tuple[int, torch.Tensor], ...]
    sources: tuple[InputSource, ...]
    results: int


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def marked(loss: torch.Tensor) -> torch.Tensor:
    """The loss as the caller gets it. The node of this function is what the gradients are of."""
    return loss.detach()


def loss_of(gm: torch.fx.GraphModule) -> torch.Tensor | None:
    """The fake tensor that Dynamo had for the loss; None where the graph has none."""
    found = next((n for n in gm.graph.nodes if n.target is marked), None)
    if found is None or not isinstance(found.args[0], FxNode):
        return None
    value = found.args[0].meta.get("example_value")
    return value if isinstance(value, torch.Tensor) else None


def _gradients(
    loss: torch.Tensor, weights: Sequence[torch.Tensor], places: Sequence[int], wanted: Sequence[int]
) -> tuple[torch.Tensor, ...]:
    """The gradients of the weights with the ``wanted`` places, each in memory of its own, as an update may write to it.

    Raises `OtherGradients` where the loss depends on other weights; ``places`` are those of all that it may depend on.
    """
    found = torch.autograd.grad(loss, weights, allow_unused=True) if weights else ()
    used = {place: g for place, g in zip(places, found, strict=True) if g is not None}
    if used.keys() != set(wanted):
        raise OtherGradients(tuple(used))
    return tuple(used[place].clone() for place in wanted)


def whole_step(
    loss: Traced,
    update: Traced,
    weights: Sequence[torch.Tensor],
    stand_ins: Mapping[int, int],
    names: Mapping[int, InputSource],
) -> WholeStep:
    """Put the update behind the loss: what it takes for gradients are those of the loss.

    ``stand_ins`` has, by the identity of a tensor that stood for a gradient when the update was traced, the place of
    its weight among ``weights``; ``names`` has, by identity, what tensors are. Where the loss depends on other weights,
    tracing what comes out raises `OtherGradients`.
    """
    return _Join(loss, update, names).joined(weights, stand_ins)


class _Join:
    """The making of one graph of two."""

    def __init__(self, loss: Traced, update: Traced, names: Mapping[int, InputSource]) -> None:
        self._loss, self._update = loss, update
        self._names = names
        self._graph = FxGraph()
        self._known: dict[int, FxNode] = {}
        self._fixed: list[torch.Tensor] = []
        self._sources: list[InputSource] = []

    def joined(self, weights: Sequence[torch.Tensor], stand_ins: Mapping[int, int]) -> WholeStep:
        of_loss, of_update = self._inputs_of_loss(), dict[FxNode, FxNode]()
        of_loss.update(self._tensors_of(self._loss.gm))
        read = {i: self._known[id(w)] for i, w in enumerate(weights) if id(w) in self._known}
        of_update.update(self._tensors_of(self._update.gm))
        passed, taken = self._inputs_of_update(of_update, stand_ins)
        self._graph.call_function(torch._C._set_grad_enabled, (True,))
        self._copy(self._loss.gm, of_loss, "loss")
        devices = sorted({w.device.type for w in weights})
        casts = [self._graph.call_function(_enter_autocast, (d, None, False, None)) for d in devices if _is_autocast(d)]
        gradients = self._differentiate(of_loss, read, sorted(stand_ins.values()))
        of_update.update((node, gradients[place]) for node, place in taken.items())
        self._graph.call_function(torch._C._set_grad_enabled, (False,))
        self._copy(self._update.gm, of_update, "update")
        for cast in reversed(casts):
            self._graph.call_function(_exit_autocast, (cast,))
        results = [_detached(self._graph, o, of_loss) for o in _outputs(self._loss.gm)]
        self._graph.output((*results, *(_mapped(o, of_update) for o in _outputs(self._update.gm))))
        root = torch.nn.Module()
        root.loss, root.update = self._loss.gm, self._update.gm
        module = torch.fx.GraphModule(root, self._graph)
        return WholeStep(module, tuple(self._fixed), passed, self._shared(), tuple(self._sources), len(results))

    def _shared(self) -> tuple[tuple[int, torch.Tensor], ...]:
        places = {id(t): i for i, t in enumerate(self._loss.inputs)}
        tensors = self._tensors(self._update.gm).values()
        return tuple((places[id(t)], t) for t in tensors if id(t) in places)

    def _inputs_of_loss(self) -> dict[FxNode, FxNode]:
        copies = {}
        nodes = _placeholders(self._loss.gm)
        for node, given, source in zip(nodes, self._loss.inputs, input_sources(self._loss.gm), strict=True):
            copies[node] = self._input(f"loss_{node.name}", self._names.get(id(given), source))
            if isinstance(given, torch.Tensor):
                self._known[id(given)] = copies[node]
        return copies

    def _tensors_of(self, gm: torch.fx.GraphModule) -> Iterator[tuple[FxNode, FxNode]]:
        """The nodes that read a tensor which the graph holds, each with the input that it becomes."""
        for node, tensor in self._tensors(gm).items():
            if id(tensor) not in self._known:
                source = self._names.get(id(tensor), InputSource("", str(node.target)))
                self._known[id(tensor)] = self._input(f"fixed_{len(self._fixed)}", source)
                self._fixed.append(tensor)
            yield node, self._known[id(tensor)]

    @staticmethod
    def _tensors(gm: torch.fx.GraphModule) -> dict[FxNode, torch.Tensor]:
        read = ((n, operator.attrgetter(str(n.target))(gm)) for n in gm.graph.nodes if n.op == "get_attr")
        return {node: value for node, value in read if isinstance(value, torch.Tensor)}

    def _inputs_of_update(
        self, copies: dict[FxNode, FxNode], stand_ins: Mapping[int, int]
    ) -> tuple[tuple[int, ...], dict[FxNode, int]]:
        """Which inputs of the update are passed on, and which are the gradient of which weight."""
        passed, taken = [], {}
        for index, (node, given) in enumerate(zip(_placeholders(self._update.gm), self._update.inputs, strict=True)):
            if id(given) in stand_ins:
                taken[node] = stand_ins[id(given)]
            elif id(given) in self._known:
                copies[node] = self._known[id(given)]
            else:
                passed.append(index)
                copies[node] = self._input(f"update_{node.name}", InputSource("", node.name))
        return tuple(passed), taken

    def _input(self, name: str, source: InputSource) -> FxNode:
        self._sources.append(source)
        return self._graph.placeholder(name)

    def _differentiate(
        self, of_loss: Mapping[FxNode, FxNode], read: Mapping[int, FxNode], wanted: Sequence[int]
    ) -> dict[int, FxNode]:
        """The gradients of the loss, by the places of those weights that an update was traced for."""
        (loss,) = (n.args[0] for n in self._loss.gm.graph.nodes if n.target is marked)
        given = of_loss[loss], tuple(read.values()), tuple(read), tuple(wanted)
        found = self._graph.call_function(_gradients, given)
        return {place: self._graph.call_function(operator.getitem, (found, i)) for i, place in enumerate(wanted)}

    def _copy(self, gm: torch.fx.GraphModule, copies: dict[FxNode, FxNode], prefix: str) -> None:
        for node in gm.graph.nodes:
            if node in copies or node.op in ("placeholder", "output"):
                continue
            copies[node] = copy = self._graph.node_copy(node, copies.__getitem__)
            if node.op in ("get_attr", "call_module"):
                copy.target = f"{prefix}.{node.target}"


def _is_autocast(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _placeholders(gm: torch.fx.GraphModule) -> list[FxNode]:
    return [n for n in gm.graph.nodes if n.op == "placeholder"]


def _outputs(gm: torch.fx.GraphModule) -> Sequence[Any]:
    made: Sequence[Any] = gm.graph.output_node().args[0]  # type: ignore[assignment]  # Dynamo's output is a tuple
    return made


def _mapped(output: Any, copies: Mapping[FxNode, FxNode]) -> Any:
    return copies[output] if isinstance(output, FxNode) else output


def _detached(graph: FxGraph, output: Any, copies: Mapping[FxNode, FxNode]) -> Any:
    """An output of the loss without gradients, which have been used up."""
    found = _mapped(output, copies)
    value = output.meta.get("example_value") if isinstance(output, FxNode) else None
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return found
    return graph.call_method("detach", (found,))
