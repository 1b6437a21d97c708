"""A module, the inputs to call it with, and the dimensions of them that may vary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from fairlead._models._tensors import tensors_of, with_tensors

if TYPE_CHECKING:
    import torch

__all__ = ["Dynamic", "Model", "next_sizes"]

Dynamic: TypeAlias = "dict[str, dict[int, str]]"
"""Argument name (as `tensors_of` names it) to dimension to the name of its size; equal names vary together."""


@dataclass(frozen=True)
class Model:
    """What `load` returns. The module is in eval mode, or in train mode where it was loaded for training."""

    name: str
    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic: Dynamic = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors among the inputs: positional ones are called ``"0"``, ``"1"``, the others by their keyword."""
        return {**tensors_of(self.args), **tensors_of(self.kwargs)}

    def inputs(self, tensors: dict[str, torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments and keyword arguments with these tensors in place of those of the example."""
        return with_tensors(self.args, tensors), with_tensors(self.kwargs, tensors)

    def resized(self, sizes: dict[str, int]) -> dict[str, torch.Tensor]:
        """The example's tensors with the named dimensions cut, or repeated from the start, to ``sizes``."""
        import torch

        tensors = self.tensors
        for name, dims in self.dynamic.items():
            for dim, size in dims.items():
                length = tensors[name].shape[dim]
                index = torch.arange(sizes[size]) % length
                tensors[name] = tensors[name].index_select(dim, index.to(tensors[name].device))
        return tensors

    def sizes(self) -> dict[str, int]:
        """The example's size for each name in ``dynamic``."""
        tensors = self.tensors
        return {name: tensors[path].shape[dim] for path, dims in self.dynamic.items() for dim, name in dims.items()}


def next_sizes(size: int) -> tuple[int, int, int]:
    """Three sizes for a dimension of this size: the first is compiled for, the others are new to the compiler.

    Torch specialises on 0 and 1, so none is below 2. Larger dimensions only shrink: position tables have an end.

    >>> next_sizes(1), next_sizes(48)
    ((2, 3, 5), (48, 24, 47))
    """
    first = max(size, 2)
    if first < 6:
        return first, first + 1, first + 3
    return first, first // 2, first - 1
