"""What the corpus keeps of tensors: a distribution that inputs are drawn from again, and two numbers of each output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from fairlead._torch_types import TORCH_DTYPES
from fairlead.interpret import restride
from fairlead.ir import Graph, TensorType, Type, dims
from fairlead.ir._tensors import tensor_data
from fairlead.ir.random import Distribution, Integers, Normal, Uniform, describe, draw

__all__ = ["Summary", "agree", "described", "drawn", "summary"]

SEED = 7
LARGE = 3.0e3
"""How many times the rounding of the dtype a projection may move, relative to the sum of magnitudes."""

SMALL = 1e-2
"""Sums of magnitudes below this are allowed what this is: gradients that cancel leave the rounding of their terms."""

Summary = tuple[str, str]
"""A projection on fixed pseudo-random weights and the sum of magnitudes, as text, which has nan and inf."""


def described(type_: Type, tensor: Any) -> str:
    """A distribution that resembles an input, as a short text, with the sizes that its type leaves open.

    An integer stands for itself.
    """
    if not isinstance(tensor, torch.Tensor):
        return str(int(tensor))
    sizes = f":{'x'.join(map(str, tensor.shape))}" if isinstance(type_, TensorType) and not type_.is_static else ""
    match describe(tensor_data(tensor.detach().contiguous().resolve_conj())):
        case Normal(mean=mean, std=std):
            return f"n:{mean:.3g}:{std:.3g}{sizes}"
        case Uniform(low=low, high=high):
            return f"u:{low:.3g}:{high:.3g}{sizes}"
        case Integers(low=low, high=high):
            return f"i:{low}:{high}{sizes}"


def drawn(graph: Graph, texts: Sequence[str]) -> list[Any]:
    """Inputs of a graph, the same everywhere."""
    inputs: list[Any] = []
    shapes = [_sizes(item.value.type, text) for item, text in zip(graph.inputs, texts, strict=True)]
    sizes = {
        s.name: int(texts[s.source[0]]) if s.source[1] is None else shapes[s.source[0]][s.source[1]]
        for s in graph.symbols
    }
    for index, (item, text) in enumerate(zip(graph.inputs, texts, strict=True)):
        type_ = item.value.type
        if not isinstance(type_, TensorType):
            inputs.append(int(text))
            continue
        shape = shapes[index]
        data = draw(_distribution(text), SEED, index, type_.dtype, shape)
        dtype = TORCH_DTYPES[type_.dtype]
        tensor = (
            torch.frombuffer(data.data, dtype=dtype).reshape(shape) if data.nbytes else torch.empty(shape, dtype=dtype)
        )
        inputs.append(
            tensor if type_.strides is None else restride(tensor, [dims.evaluate(s, sizes) for s in type_.strides])
        )
    return inputs


def _sizes(type_: Type, text: str) -> tuple[int, ...]:
    if not isinstance(type_, TensorType):
        return ()
    written = text.split(":")[3:]
    return tuple(map(int, written[0].split("x") if written else type_.shape))


def _distribution(text: str) -> Distribution:
    kind, first, second = text.split(":")[:3]
    if kind == "i":
        return Integers(int(first), int(second))
    return (Normal if kind == "n" else Uniform)(float(first), float(second))


def summary(output: Any) -> Summary | None:
    """Two numbers that any change of an output's elements shows in; None stays None."""
    if output is None:
        return None
    tensor = torch.as_tensor(output).detach()
    flat = (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).to(torch.float64).reshape(-1)
    index = torch.arange(flat.numel(), dtype=torch.int64)
    weights = ((index * 2654435761 + 12345) % 4294967296).to(torch.float64) / 4294967296 + 0.5
    return f"{float((flat * weights).sum()):.9g}", f"{float(flat.abs().sum()):.9g}"


def agree(wanted: Summary | None, found: Summary | None, dtype: torch.dtype) -> bool:
    """Whether two summaries are of equal outputs, as far as the dtype can tell."""
    if wanted is None or found is None:
        return wanted is found
    rounding = torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 1e-9
    allowed = LARGE * rounding * max(float(wanted[1]), SMALL)
    return all(
        abs(float(a) - float(b)) <= allowed if math.isfinite(float(a)) else a == b
        for a, b in zip(wanted, found, strict=True)
    )
