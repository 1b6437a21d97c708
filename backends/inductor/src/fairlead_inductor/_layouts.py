"""With which strides tensors come to generated code, and leave it.

What a forward saves nobody but its backward sees. So Inductor lays out images as it likes, which is with channels last,
and generates the backward for what it gets. Where sizes are symbols, all is laid out as it was captured; so is what has
fewer dimensions, whose rows Inductor would pad, and with them those of results that are views of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead.interpret import overlaps, restride
from fairlead.ir import Graph, Kind, Role, TensorType, dims, row_major

__all__ = ["Layouts", "row_major_gradients", "saving_freely"]

_ANY = (Role.intermediate, Role.constant, Role.saved)
"""What may come with other strides than it was captured with."""

_IMAGE = 4
"""So many dimensions have images at least: samples, channels, height and width."""


class Layouts:
    """The strides of a graph's inputs: as captured, but for what a forward saved, where `meet` found other ones."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._names = [s.name for s in graph.symbols]
        tensors = [i for i, item in enumerate(graph.inputs) if isinstance(item.value.type, TensorType)]
        self._saved = [i for i in tensors if graph.inputs[i].role is Role.saved]
        self._varying = [i for i in tensors if graph.inputs[i].role in _ANY]
        self._met: dict[int, tuple[int, ...]] = {}
        self._wanted: list[tuple[int, ...]] | None = None

    def meet(self, inputs: Sequence[Any]) -> None:
        """Generate code for the saved tensors as they lie here."""
        if not self._names:
            self._met = {
                i: inputs[i].stride() for i in self._saved if not overlaps(inputs[i].shape, inputs[i].stride())
            }
            self._wanted = None

    def fit(self, inputs: Sequence[Any], values: Sequence[int]) -> Sequence[Any]:
        """The inputs with the strides that code is generated for; ``values`` are those of the graph's symbols."""
        strides = self._evaluated(values) if self._wanted is None else self._wanted
        if [inputs[i].stride() for i in self._varying] == strides:
            return inputs
        fitted = list(inputs)
        for i, wanted in zip(self._varying, strides, strict=True):
            if inputs[i].stride() != wanted:
                fitted[i] = restride(inputs[i], wanted)
        return fitted

    def _evaluated(self, values: Sequence[int]) -> list[tuple[int, ...]]:
        env = dict(zip(self._names, values, strict=True))
        found = [self.of(i, env) for i in self._varying]
        if not env:
            self._wanted = found
        return found

    def of(self, place: int, env: Mapping[str, Any]) -> tuple[Any, ...]:
        """The strides of the input at ``place``, a tensor; ``env`` has the values of the symbols."""
        if place in self._met:
            return self._met[place]
        type_ = self._graph.inputs[place].value.tensor
        strides = type_.strides if type_.strides is not None else row_major(type_.shape)
        return tuple(dims.evaluate(s, env) for s in strides)


def saving_freely(graph: Graph, inner: Callable[..., Any]) -> Callable[..., Any]:
    """Inductor's ``inner_compile``, for which images that are saved may have any strides."""
    results = list(graph.output_values())
    if graph.symbols or len(results) != len(graph.outputs):
        return inner
    saved = [k for k, output in enumerate(graph.outputs) if output.role is Role.saved]
    images = {k for k in saved if results[k].tensor.rank >= _IMAGE}
    if not images:
        return inner

    def free(module: torch.fx.GraphModule, *args: Any, **how: Any) -> Any:
        meta = module.graph.output_node().meta
        meta[_SEEN] = [k for k in meta.get(_SEEN, ()) if k not in images]
        return inner(module, *args, **how)

    return free


def row_major_gradients(module: torch.fx.GraphModule, graph: Graph) -> torch.fx.GraphModule:
    """The module, changed in place, whose gradients are laid out within where they are captured row-major.

    Those of convolutions come with channels last; autograd would copy each by a kernel of its own.
    """
    if graph.kind is not Kind.backward:
        return module
    output = module.graph.output_node()
    (results,) = output.args
    with module.graph.inserting_before(output):
        laid_out = [
            _row_major(node, value.tensor) if value.tensor.strides is None and value.tensor.rank >= _IMAGE else node
            for node, value in zip(results, graph.output_values(), strict=True)  # type: ignore[arg-type]
        ]
    output.args = (laid_out,)
    module.recompile()
    return module


def _row_major(node: Any, type_: TensorType) -> torch.fx.Node:
    """The value with the strides of its shape, for dimensions of one as well, to which torch leaves any."""
    graph: torch.fx.Graph = node.graph
    found = graph.call_function(torch.ops.aten.contiguous.default, (node,))
    if 1 in type_.shape and type_.is_static:
        for shape in ([n for n in type_.shape if n != 1], type_.shape):
            found = graph.call_function(torch.ops.aten.view.default, (found, list(shape)))
    return found


_SEEN = "user_visible_output_idxs"
"""Where Inductor notes which outputs keep their strides; without it none do."""
