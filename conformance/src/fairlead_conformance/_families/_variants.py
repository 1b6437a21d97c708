"""What is done to the inputs of a frozen case: other layouts of the same elements, and values at the edges.

A variant takes an input to another, or to None where it has nothing to change. Layouts are changed of every tensor,
values of the first tensor that is drawn at random, always in the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from fairlead.interpret import restride
from fairlead_conformance._pack import Drawn, Specification

__all__ = ["EDGES", "LAYOUTS", "varied"]

Change: TypeAlias = Callable[[torch.Tensor], "torch.Tensor | None"]

_OFFSET = 3
_GRID = 3.0


def _transposed(x: torch.Tensor) -> torch.Tensor | None:
    if sum(n > 1 for n in x.shape) < 2:
        return None
    order = tuple(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order)


def _offset(x: torch.Tensor) -> torch.Tensor | None:
    if not x.numel():
        return None
    memory = torch.zeros(_OFFSET + x.numel() + _OFFSET, dtype=x.dtype)
    memory[_OFFSET : _OFFSET + x.numel()] = x.reshape(-1)
    return memory[_OFFSET : _OFFSET + x.numel()].view(x.shape)


def _expanded(x: torch.Tensor) -> torch.Tensor | None:
    wide = next((d for d, n in enumerate(x.shape) if n > 1), None)
    if wide is None or not x.numel():
        return None
    return x.narrow(wide, 0, 1).contiguous().expand(x.shape)


def _channels_last(x: torch.Tensor) -> torch.Tensor | None:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if x.ndim not in formats or x.shape[1] < 2 or x[:1, :1].numel() < 2:
        return None
    return x.contiguous(memory_format=formats[x.ndim])


LAYOUTS: dict[str, Change] = {
    "transposed": _transposed,
    "offset": _offset,
    "expanded": _expanded,
    "channels_last": _channels_last,
}
"""The same logical tensor in other memory; of an expanded one, all elements along a dimension are the first."""


def _planted(*values: Callable[[torch.dtype], float]) -> Change:
    """These values at the first element, the middle one, and so on; layout and all other elements stay."""

    def plant(x: torch.Tensor) -> torch.Tensor | None:
        if not x.dtype.is_floating_point or not x.numel():
            return None
        return _with(x, [value(x.dtype) for value in values])

    return plant


def _planted_integers(*values: Callable[[torch.dtype], int]) -> Change:
    def plant(x: torch.Tensor) -> torch.Tensor | None:
        if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype is torch.bool or not x.numel():
            return None
        return _with(x, [value(x.dtype) for value in values])

    return plant


def _with(x: torch.Tensor, values: Sequence[Any]) -> torch.Tensor:
    flat = x.reshape(-1).clone()
    for index, value in enumerate(values):
        flat[index * flat.numel() // len(values)] = value
    return restride(flat.view(x.shape), x.stride())


def _mapped(function: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """Every element changed, in floating-point tensors."""

    def change(x: torch.Tensor) -> torch.Tensor | None:
        if not x.dtype.is_floating_point or not x.numel():
            return None
        return restride(function(x.contiguous()), x.stride())

    return change


def _power(bits: Callable[[int], int], more: int = 0) -> Callable[[torch.dtype], int]:
    """A power of two, by how many bits the type has, and what is added to it."""
    return lambda dtype: (1 << bits(torch.iinfo(dtype).bits)) + more


def _tiny(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).smallest_normal


EDGES: dict[str, Change] = {
    "nan": _planted(lambda _: float("nan")),
    "inf": _planted(lambda _: float("inf"), lambda _: float("-inf")),
    "negzero": _planted(lambda _: -0.0, lambda _: 0.0),
    "denormal": _planted(lambda d: _tiny(d) / 4, lambda d: -_tiny(d) / 2),
    "zeros": _mapped(torch.zeros_like),
    "ties": _mapped(lambda x: (x / _GRID).round() * _GRID),
    "halves": _mapped(lambda x: x.floor() + 0.5),
    "large": _mapped(lambda x: x * torch.finfo(x.dtype).max ** 0.75),
    "intmin": _planted_integers(lambda d: torch.iinfo(d).min, lambda d: torch.iinfo(d).min + 1),
    "intmax": _planted_integers(lambda d: torch.iinfo(d).max, lambda d: torch.iinfo(d).max - 1),
    "intwide": _planted_integers(
        _power(lambda bits: bits // 2 - 1),
        _power(lambda bits: bits // 2, -1),
        _power(lambda bits: min(24, bits - 2)),
        _power(lambda bits: min(24, bits - 2), 1),
        _power(lambda bits: bits - 2, 1),
        _power(lambda bits: bits - 2, 2),
    ),
}
"""Values that are easily got wrong, where an op says what becomes of them."""


def varied(name: str, given: Sequence[Specification], inputs: Sequence[Any]) -> list[Any] | None:
    """The inputs in that variant; None where it is the same as the case itself."""
    if name in LAYOUTS:
        return _relaid(name, given, inputs)
    for index, (specification, x) in enumerate(zip(given, inputs, strict=True)):
        if isinstance(specification, Drawn):
            changed = EDGES[name](x)
            return None if changed is None else [*inputs[:index], changed, *inputs[index + 1 :]]
    return None


def _relaid(name: str, given: Sequence[Specification], inputs: Sequence[Any]) -> list[Any] | None:
    changed = [
        LAYOUTS[name](x) if isinstance(x, torch.Tensor) and (name != "expanded" or isinstance(s, Drawn)) else None
        for s, x in zip(given, inputs, strict=True)
    ]
    if all(x is None for x in changed):
        return None
    return [before if after is None else after for before, after in zip(inputs, changed, strict=True)]
