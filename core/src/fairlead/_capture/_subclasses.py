"""Tensors that are made of others, such as a DTensor of this process's share: AOTAutograd passes on what is inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from fairlead._capture._torch import InputSource


def pieces(given: Any, source: InputSource) -> Iterator[tuple[Any, InputSource]]:
    """What AOTAutograd passes to a graph for an input of Dynamo's, each piece with where it comes from.

    A tensor that has but one inside gives it its name.
    """
    if not isinstance(given, torch.Tensor) or not is_traceable_wrapper_subclass(given):
        yield given, source
        return
    inside = {name: getattr(given, name) for name in given.__tensor_flatten__()[0]}
    alone = sum(isinstance(each, torch.Tensor) for each in inside.values()) == 1
    for name, each in inside.items():
        yield from pieces(each, source if alone else InputSource(source.kind, f"{source.name}.{name}"))


def are_made_of_others(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Whether an input or a result of Dynamo's graph is such a tensor, or a result may be.

    Then AOTAutograd takes them apart and puts them together around the graph that it makes.
    """
    results = gm.graph.output_node().all_input_nodes
    values = [*inputs, *pytree.tree_leaves([n.meta.get("example_value", _UNKNOWN) for n in results])]
    return any(x is _UNKNOWN or (isinstance(x, torch.Tensor) and is_traceable_wrapper_subclass(x)) for x in values)


_UNKNOWN = object()


def gradient_places(gradients: Sequence[Any], counts: Sequence[int]) -> tuple[int | None, ...] | None:
    """Where the outputs of a backward graph have the gradient of each piece of each input of Dynamo's.

    ``counts`` are the pieces of each input. The gradient of one that has several is as many outputs, or a single None.
    The answer has None for the pieces of such an input; it is None where the outputs are others.
    """
    places: list[int | None] = []
    taken = 0
    for count in counts:
        if count > 1 and gradients[taken : taken + 1] == (None,):
            places += [None] * count
            taken += 1
        else:
            places += range(taken, taken + count)
            taken += count
    return tuple(places) if taken == len(gradients) else None
