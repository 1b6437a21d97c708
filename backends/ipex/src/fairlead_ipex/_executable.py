"""A graph that runs as torch's ops, with packed ones in the place of those whose weights are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from fairlead.ir import Graph
from fairlead_ipex._bounds import OutOfBoundsError
from fairlead_ipex._convolutions import find_convolutions
from fairlead_ipex._draft import Draft
from fairlead_ipex._gelu import recognize_gelu
from fairlead_ipex._in_place import reuse_memory
from fairlead_ipex._options import IpexOptions
from fairlead_ipex._packing import pack
from fairlead_ipex._post_ops import Chain, Chains, chain_of
from fairlead_ipex._stretches import Stretch, in_stretches
from fairlead_ipex._worth import can_be_fused, is_of_stretches, is_worth_fusing

if TYPE_CHECKING:
    from fairlead_ipex._fused import Fused

__all__ = ["IpexExecutable"]

_COMPILED = 2
"""So many sets of weights are compiled with what lies between products: weights that change again will change often."""


_Run = Callable[[Sequence[Any]], Sequence[Any]]


class IpexExecutable:
    """The module of a graph. ``baked`` are all constants: what was packed, and what the other ops read."""

    fresh_outputs = True
    module: fx.GraphModule
    _run: _Run
    _fused: Fused | None
    _readable: Callable[[], Mapping[str, str]]

    def __init__(
        self, graph: Graph, options: IpexOptions, constants: Mapping[int, torch.Tensor], stored: bytes = b""
    ) -> None:
        """``stored``: what `dump` gave, if anything."""
        self.graph = graph
        self._stored = stored
        self.baked = frozenset(constants)
        self._options = options
        compiles = options.fuse and options.weights == "same"
        self._is_of_stretches = compiles and is_of_stretches(graph)
        self._left = _COMPILED if compiles and can_be_fused(graph) and is_worth_fusing(graph) else 0
        self.refit(constants)

    def dump(self) -> bytes:
        """What Inductor stores of its code, where that runs; nothing of the weights."""
        return self._fused.dump() if self._fused is not None else b""

    def readable(self) -> Mapping[str, str]:
        """The module as Python: the calls of torch's and oneDNN's kernels; or Inductor's code, where it compiles it.

        With it what oneDNN Graph has of each stretch of convolutions.
        """
        return self._readable()

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Make the module anew: whether a batch norm is folded depends on its numbers."""
        if self._is_of_stretches and self._stretch(constants):
            return
        if self._left:
            self._left -= 1
            self._fuse(constants)
        else:
            self._call(self._op_by_op(constants))

    def _stretch(self, constants: Mapping[int, torch.Tensor]) -> bool:
        """Whether oneDNN Graph has compiled the stretches of convolutions."""
        module = in_stretches(self._draft(constants), self._options)
        stretches = {n: s for n, s in module.named_children() if isinstance(s, Stretch)}
        self._is_of_stretches = bool(stretches) and all(s.is_compiled for s in stretches.values())
        if self._is_of_stretches:
            self._call(module)
            careful = functools.cache(lambda: self._op_by_op(constants).forward)
            self._run = functools.partial(_within_bounds, self._run, careful)
            texts = {f"{name}.txt": stretch.text for name, stretch in stretches.items()}
            self._readable = lambda: {"module.py": module.code, **texts}
        return self._is_of_stretches

    def _fuse(self, constants: Mapping[int, torch.Tensor]) -> None:
        from fairlead_ipex._fused import Fused

        draft = self._packed(constants, Chain)
        self.module = draft.module
        fused = Fused(self.graph, draft, constants, self._stored, finite=self._options.finite)
        self._readable, self._run, self._fused = fused.readable, fused, fused

    def _call(self, module: fx.GraphModule) -> None:
        self.module, self._fused = module, None
        self._readable = lambda: {"module.py": module.code}
        forward = module.forward
        self._run = lambda inputs: forward(*inputs)

    def _op_by_op(self, constants: Mapping[int, torch.Tensor]) -> fx.GraphModule:
        draft = self._packed(constants, functools.partial(chain_of, finite=self._options.finite))
        reuse_memory(draft.graph)
        return draft.finish()

    def _packed(self, constants: Mapping[int, torch.Tensor], chains: Chains) -> Draft:
        draft = self._draft(constants)
        pack(draft, find_convolutions(draft), self._options, chains)
        return draft

    def _draft(self, constants: Mapping[int, torch.Tensor]) -> Draft:
        return Draft(recognize_gelu(self.graph), constants)

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        return self._run(inputs)


def _within_bounds(run: _Run, careful: Callable[[], Callable[..., Any]], inputs: Sequence[Any]) -> Sequence[Any]:
    """What ``run`` gives; of numbers that it does not take, what the ``careful`` one gives, which is made for them."""
    try:
        return run(inputs)
    except OutOfBoundsError:
        pass
    made: Sequence[Any] = careful()(*inputs)
    return made
