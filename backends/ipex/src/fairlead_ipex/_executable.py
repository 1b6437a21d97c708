"""A graph that runs as torch's ops, with packed ones in the place of those whose weights are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead.ir import Graph
from fairlead_ipex._convolutions import pack_convolutions
from fairlead_ipex._draft import Draft
from fairlead_ipex._gelu import recognize_gelu
from fairlead_ipex._in_place import reuse_memory
from fairlead_ipex._options import IpexOptions
from fairlead_ipex._post_ops import Chain, Chains, chain_of
from fairlead_ipex._products import pack_products
from fairlead_ipex._worth import can_be_fused, is_worth_fusing

__all__ = ["IpexExecutable"]

_COMPILED = 2
"""So many sets of weights are compiled with what lies between products: weights that change again will change often."""


class IpexExecutable:
    """The module of a graph. ``baked`` are all constants: what was packed, and what the other ops read."""

    fresh_outputs = True

    def __init__(self, graph: Graph, options: IpexOptions, constants: Mapping[int, torch.Tensor]) -> None:
        self.graph = graph
        self.baked = frozenset(constants)
        self._options = options
        fuses = options.fuse and options.weights == "same" and can_be_fused(graph) and is_worth_fusing(graph)
        self._left = _COMPILED if fuses else 0
        self.refit(constants)

    def readable(self) -> Mapping[str, str]:
        """The module as Python: the calls of torch's and oneDNN's kernels; or Inductor's code, where it compiles it."""
        return self._readable()

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Make the module anew: whether a batch norm is folded depends on its numbers."""
        if self._left:
            self._left -= 1
            self._fuse(constants)
        else:
            self._call(constants)

    def _call(self, constants: Mapping[int, torch.Tensor]) -> None:
        draft = self._packed(constants, functools.partial(chain_of, finite=self._options.finite))
        reuse_memory(draft.graph)
        self.module = draft.finish()
        self._readable: Callable[[], Mapping[str, str]] = lambda: {"module.py": self.module.code}
        forward = self.module.forward
        self._run: Callable[[Sequence[Any]], Sequence[Any]] = lambda inputs: forward(*inputs)

    def _fuse(self, constants: Mapping[int, torch.Tensor]) -> None:
        from fairlead_ipex._fused import Fused

        draft = self._packed(constants, Chain)
        self.module = draft.module
        fused = Fused(self.graph, draft, constants, finite=self._options.finite)
        self._readable, self._run = fused.readable, fused

    def _packed(self, constants: Mapping[int, torch.Tensor], chains: Chains) -> Draft:
        draft = Draft(recognize_gelu(self.graph), constants)
        pack_convolutions(draft, chains)
        pack_products(draft, self._options, chains)
        return draft

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        return self._run(inputs)
