"""What several graphs mean that are run as one: each by itself, asked with its own share of the inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from fairlead_conformance._oracle._reference import Expected, Reference

__all__ = ["Joint"]


class Joint:
    """Graphs side by side, none of which draws. Inputs and results are those of the first, of the second, and so on."""

    is_drawn = False

    def __init__(self, references: Sequence[Reference]) -> None:
        self._references = references
        self._known: dict[tuple[int, ...], list[Expected]] = {}
        self.signed_zeros = tuple(signed for r in references for signed in r.signed_zeros)

    def eager(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """What torch computes on the CPU, op by op."""
        return [result for r, own in self._shares(inputs) for result in r.eager(own)]

    def expected(self, inputs: Sequence[Any]) -> list[Expected]:
        """What is right for these inputs, by output. They are the caller's to keep: a graph's are looked at once."""
        found: list[Expected] = []
        for reference, own in self._shares(inputs):
            asked = (id(reference), *map(id, own))
            if asked not in self._known:
                self._known[asked] = reference.expected(own)
            found += self._known[asked]
        return found

    def also_right(
        self, inputs: Sequence[Any], expected: Sequence[Expected], got: Sequence[torch.Tensor]
    ) -> Mapping[int, torch.Tensor]:
        """By output, the elements that are as right as eager's."""
        found: dict[int, torch.Tensor] = {}
        start = 0
        for reference, own in self._shares(inputs):
            end = start + len(reference.graph.outputs)
            also = reference.also_right(own, expected[start:end], got[start:end])
            found.update({start + output: elements for output, elements in also.items()})
            start = end
        return found

    def _shares(self, inputs: Sequence[Any]) -> Iterator[tuple[Reference, list[Any]]]:
        rest = iter(inputs)
        for reference in self._references:
            yield reference, list(itertools.islice(rest, len(reference.graph.inputs)))
