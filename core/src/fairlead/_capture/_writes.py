"""Inputs that a program writes on an accelerator, all of them at once and not one by one, as AOTAutograd does."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from fairlead.interpret import overwrite
from fairlead.ir import Graph, Role, Value

__all__ = ["writing"]

_FEW = 4
"""Up to so many writes are as quick one by one."""

_DEVICE = "cuda"
"""Where one kernel writes many tensors."""


def writing(run: Callable[[list[Any]], Any], graph: Graph, plain: Collection[int]) -> Callable[[list[Any]], Any]:
    """The callable, which writes the inputs of ``graph`` at ``plain`` itself where there are many on an accelerator.

    AOTAutograd then finds each of them where it would write it, and has nothing to copy. It counts the write.
    """
    places = _places(graph, plain)
    if len(places) <= _FEW:
        return run

    def written(args: list[Any]) -> Any:
        targets = [args[index].detach() for index in places.values()]
        results = list(run(args))
        overwrite(targets, [results[place] for place in places])
        for place, target in zip(places, targets, strict=True):
            results[place] = target
        return results

    written._boxed_call = True  # type: ignore[attr-defined]
    return written


def _places(graph: Graph, plain: Collection[int]) -> dict[int, int]:
    """For each output that is written to an input there, which."""
    found: dict[int, int] = {}
    for place, output in enumerate(graph.outputs):
        if output.role is not Role.mutation or output.target is None or not isinstance(output.value, Value):
            continue
        if output.target in plain and output.value.tensor.device.startswith(_DEVICE):
            found[place] = output.target
    return found
