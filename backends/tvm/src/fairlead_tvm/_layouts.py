"""How weights lie: as torch has them, or packed as the templates of products read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

from fairlead.ir import Graph, Node, Value
from fairlead_tvm._tvm import vector_bytes

__all__ = ["Layout", "Places", "Wanted", "input_layouts", "panel_width"]


def panel_width() -> int:
    """How many columns a product computes at once: two vectors of f32."""
    return 2 * vector_bytes() // 4


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of dimensions, and whether the last is cut into panels, which become the first; 0 is as it is.

    With ``groups`` the first dimension counts as two, the first of which are so many groups.
    """

    order: tuple[int, ...]
    panel: int = 0
    groups: int = 0

    def array(self, weight: torch.Tensor) -> torch.Tensor:
        """A weight as it lies in this layout: ``[panels, ..., width]``, the last panel filled up with zeros."""
        moved = weight.reshape(self._split(tuple(weight.shape))).permute(self.order)
        if not self.panel:
            return moved.contiguous()
        *lead, last = moved.shape
        count = -(-last // self.panel)
        filled = torch.nn.functional.pad(moved, (0, count * self.panel - last))
        return filled.reshape(*lead, count, self.panel).movedim(-2, 0).contiguous()

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of `array`."""
        split = self._split(shape)
        moved = tuple(split[d] for d in self.order)
        return (-(-moved[-1] // self.panel), *moved[:-1], self.panel) if self.panel else moved

    def _split(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self.groups, shape[0] // self.groups, *shape[1:]) if self.groups else shape


Wanted: TypeAlias = tuple[int, Layout]
"""An operand, and how it should lie."""

Places: TypeAlias = Callable[[Node], tuple[Wanted, ...]]
"""The weights that the rule of a node would rather have in layouts of their own."""


def input_layouts(graph: Graph, placed: frozenset[int], places: Places) -> dict[int, tuple[Layout, ...]]:
    """By value, how the weights lie: once for each way in which they are read."""
    found: dict[int, dict[Layout, None]] = {graph.inputs[i].value.id: {} for i in placed}
    for node in graph.nodes:
        wanted = dict(places(node))
        for index, argument in enumerate(node.args):
            for value in _values(argument):
                if value.id in found:
                    found[value.id][wanted.get(index, _plain(value))] = None
    for value in graph.output_values():
        if value.id in found:
            found[value.id][_plain(value)] = None
    return {value: tuple(layouts) for value, layouts in found.items()}


def _plain(value: Value) -> Layout:
    return Layout(tuple(range(value.tensor.rank)))


def _values(argument: object) -> list[Value]:
    if isinstance(argument, Value):
        return [argument]
    return [v for each in argument for v in _values(each)] if isinstance(argument, tuple) else []
