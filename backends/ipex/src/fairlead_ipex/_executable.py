"""A graph that runs as torch's ops, with packed ones in the place of those whose weights are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fairlead.ir import Graph
from fairlead_ipex._convolutions import pack_convolutions
from fairlead_ipex._draft import Draft
from fairlead_ipex._gelu import recognize_gelu
from fairlead_ipex._in_place import reuse_memory
from fairlead_ipex._options import IpexOptions
from fairlead_ipex._products import pack_products

__all__ = ["IpexExecutable"]


class IpexExecutable:
    """The module of a graph. ``baked`` are all constants: what was packed, and what the other ops read."""

    fresh_outputs = True

    def __init__(self, graph: Graph, options: IpexOptions, constants: Mapping[int, torch.Tensor]) -> None:
        self.graph = graph
        self.baked = frozenset(constants)
        self._options = options
        self.refit(constants)

    def readable(self) -> Mapping[str, str]:
        """The module as Python: the calls of torch's and oneDNN's kernels."""
        return {"module.py": self.module.code}

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Make the module anew: whether a batch norm is folded depends on its numbers."""
        draft = Draft(recognize_gelu(self.graph), constants)
        pack_convolutions(draft, finite=self._options.finite)
        pack_products(draft, self._options)
        reuse_memory(draft.graph)
        self.module = draft.finish()
        self._run = self.module.forward

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        return self._run(*inputs)  # type: ignore[no-any-return]
