"""Hands tensors of complex numbers to a graph on their parts, and takes its results as complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fairlead.ir import Graph
from fairlead_onnx._complex import has_complex_type, without_complex

if TYPE_CHECKING:
    import torch

__all__ = ["RealForm"]

Run: TypeAlias = "Callable[[Sequence[Any]], list[torch.Tensor]]"


class RealForm:
    """A graph without complex numbers, and the way into and out of it.

    ``graph`` is the given graph, with two real numbers in the place of each complex one. Inputs and results are complex
    tensors on the one side and show the same memory as pairs of real numbers on the other; nothing is copied but what
    is lazily conjugated. Needs torch where a graph has complex inputs or outputs.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = without_complex(graph)
        self._inputs = frozenset(i for i, given in enumerate(graph.inputs) if has_complex_type(given.value))
        self._outputs = tuple(i for i, value in enumerate(graph.output_values()) if has_complex_type(value))

    def constants(self, constants: Mapping[int, torch.Tensor]) -> Mapping[int, torch.Tensor]:
        """The constants of the given graph, by input, as those of ``graph``."""
        if self._inputs.isdisjoint(constants):
            return constants
        return {i: _parts(tensor) if i in self._inputs else tensor for i, tensor in constants.items()}

    def around(self, run: Run, baked: frozenset[int]) -> Run:
        """What runs the given graph, of what runs ``graph``; inputs that are ``baked`` are passed to neither."""
        passed = [i for i in range(len(self.graph.inputs)) if i not in baked]
        places = [place for place, i in enumerate(passed) if i in self._inputs]
        if not places and not self._outputs:
            return run

        def on_complex_numbers(inputs: Sequence[Any]) -> list[torch.Tensor]:
            import torch

            given = list(inputs)
            for place in places:
                given[place] = _parts(given[place])
            results = run(given)
            for index in self._outputs:
                results[index] = torch.view_as_complex(results[index])
            return results

        return on_complex_numbers


def _parts(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.view_as_real(tensor.resolve_conj().resolve_neg())
