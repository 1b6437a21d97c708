"""Inputs for another call of the same graph: as they lie in memory, with other values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from fairlead.interpret import restride, torch_dtype
from fairlead.ir import Graph, TensorType, Type, dims
from fairlead_conformance._device import onto

__all__ = ["copies", "drawn", "resolved", "salted"]

SCALE = 0.8125
"""What floating-point values are multiplied by, exactly: it leaves intervals around zero and positive matrices."""


def drawn(graph: Graph, seed: int, sizes: Mapping[str, int] | None = None) -> list[Any]:
    """Inputs of the types that the graph declares: normal numbers, integers from 0 to 4, and both truth values.

    ``sizes`` gives the symbols their values.
    """
    generator = torch.Generator().manual_seed(seed)
    env = dict(sizes or {})
    scalars = {s.source[0]: env[s.name] for s in graph.symbols if s.source[1] is None}
    return [scalars[i] if i in scalars else _drawn(x.value.type, env, generator) for i, x in enumerate(graph.inputs)]


def _drawn(type_: Type, env: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    assert isinstance(type_, TensorType)
    shape = [dims.evaluate(d, env) for d in type_.shape]
    if type_.dtype.is_floating or type_.dtype.is_complex:
        wide = torch.complex128 if type_.dtype.is_complex else torch.float64
        return torch.randn(shape, dtype=wide, generator=generator).to(torch_dtype(type_.dtype))
    return torch.randint(0, 2 if type_.dtype == "bool" else 5, shape, generator=generator).to(torch_dtype(type_.dtype))


def resolved(inputs: Sequence[Any]) -> list[Any]:
    """The inputs without lazy conjugation and negation, with the strides that they have, as core passes them on."""
    return [
        restride(x.resolve_conj().resolve_neg(), x.stride())
        if isinstance(x, torch.Tensor) and (x.is_conj() or x.is_neg())
        else x
        for x in inputs
    ]


def copies(inputs: Sequence[Any], device: str = "cpu") -> list[Any]:
    """The inputs in memory of their own, on ``device``."""
    return [onto(x, device) if isinstance(x, torch.Tensor) else x for x in inputs]


def salted(
    inputs: Sequence[Any], accepts: Callable[[Sequence[Any]], bool], salt: int, *, integers: bool = True
) -> list[Any]:
    """Other inputs of the same layout that the graph ``accepts``, or copies where no such are found.

    Values change places and are scaled, so that they stay within what the graph's ops are defined for. ``integers``:
    whether those of integers do.
    """
    shift = 1 + salt % 7
    found = _candidates(inputs, shift, shift if integers else 0)
    return next((other for other in found if accepts(other)), copies(inputs))


def _candidates(inputs: Sequence[Any], shift: int, most: int) -> Iterator[list[Any]]:
    for floats, integers, scale in ((shift, most, SCALE), (shift, 0, SCALE), (shift, 0, 1.0), (0, 0, SCALE)):
        yield [_changed(x, floats, integers, scale) if isinstance(x, torch.Tensor) else x for x in inputs]


def _changed(tensor: torch.Tensor, floats: int, integers: int, scale: float) -> torch.Tensor:
    rounds = tensor.is_floating_point() or tensor.is_complex()
    other = onto(tensor, "cpu")
    shift = floats if rounds else integers
    # A dimension of stride zero has one element in memory; the others are told apart by their addresses.
    own = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in other.stride())
    values = tensor[own].flatten().roll(shift).reshape(tensor[own].shape)
    try:
        other[own] = (values * scale).to(tensor.dtype) if rounds else values
    except RuntimeError:  # elements that share addresses, as in windows
        return other
    return other
