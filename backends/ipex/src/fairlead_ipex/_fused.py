"""What lies between packed products, compiled by Inductor into one pass for each stretch of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead.backend import Executable
from fairlead.ir import Graph
from fairlead_inductor import InductorOptions
from fairlead_inductor import backend as inductor
from fairlead_ipex._convolutions import LAYOUTS
from fairlead_ipex._draft import Draft, op_of

__all__ = ["Fused", "OfInductor"]


class OfInductor:
    """What Inductor's code, which ``_run`` is, says of itself."""

    _run: Executable

    def dump(self) -> bytes:
        """What Inductor stores of its code."""
        return inductor.dump(self._run)

    def readable(self) -> Mapping[str, str]:
        """Inductor's code, generated anew."""
        readable: Callable[[], Mapping[str, str]] = self._run.readable  # type: ignore[attr-defined]
        return readable()


class Fused(OfInductor):
    """A packed module in Inductor's code. Packed weights are within it; all other constants are inputs of it.

    ``finite`` as in the options: otherwise Inductor is kept from having oneDNN compute what makes numbers of NaN.
    """

    def __init__(
        self, graph: Graph, draft: Draft, constants: Mapping[int, torch.Tensor], stored: bytes, *, finite: bool
    ) -> None:
        """``stored``: what `dump` gave, or nothing."""
        _leave_layouts(draft)
        if not finite:
            _keep_from_products(draft)
        self._free = [i for i in range(len(graph.inputs)) if i not in constants]
        self._given = [constants[i].detach() if i in constants else None for i in range(len(graph.inputs))]
        module, options = draft.taking_all(), InductorOptions()
        self._run = (
            inductor.load_module(stored, graph, options, module)
            if stored
            else inductor.compile_module(graph, options, module)
        )

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        given: list[Any] = self._given.copy()
        for place, tensor in zip(self._free, inputs, strict=True):
            given[place] = tensor
        return self._run(given)


def _leave_layouts(draft: Draft) -> None:
    """Before: images are laid out for each convolution. After: Inductor lays them out, where they come otherwise."""
    for node in draft.graph.nodes:
        if node.target in LAYOUTS:
            node.replace_all_uses_with(node.args[0])


def _keep_from_products(draft: Draft) -> None:
    """Before: ops that Inductor has oneDNN compute within the product before them. After: formulas of the same."""
    for node in draft.graph.nodes:
        node.target = _FORMULAS.get(op_of(node) or "", node.target)


def _relu(x: torch.Tensor) -> torch.Tensor:
    return torch.maximum(x, x.new_zeros(()))


def _hardtanh(x: torch.Tensor, least: float = -1.0, most: float = 1.0) -> torch.Tensor:
    return torch.minimum(torch.maximum(x, x.new_full((), least)), x.new_full((), most))


def _hardsigmoid(x: torch.Tensor) -> torch.Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (_hardtanh(wide + 3, 0.0, 6.0) / 6).to(x.dtype)


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    if approximate != "none":
        return torch.nn.functional.gelu(x, approximate=approximate)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * ((1 + torch.erf(wide * math.sqrt(0.5))) * 0.5)).to(x.dtype)


_FORMULAS: Mapping[str, Callable[..., torch.Tensor]] = {
    "aten.relu.default": _relu,
    "aten.hardtanh.default": _hardtanh,
    "aten.hardsigmoid.default": _hardsigmoid,
    "aten.gelu.default": _gelu,
}
