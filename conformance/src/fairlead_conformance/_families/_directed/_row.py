"""A row of the tables: a graph of one op, or of a few, with the inputs on which it is difficult."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from fairlead.interpret import torch_dtype
from fairlead.ir import Builder, DType, Graph, TensorType, Value
from fairlead_conformance._case import Level

__all__ = [
    "DENORMAL",
    "INF",
    "NAN",
    "Row",
    "b1",
    "bf16",
    "c64",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "row",
    "row_of",
    "ramp",
    "u8",
]

INF, NAN = math.inf, math.nan
DENORMAL = 1e-40
"""Below the smallest normal float32."""

Made: TypeAlias = tuple[Graph, list[Any]]


class Row:
    """A case of the family: ``subject`` is what is difficult, ``make`` gives the graph and its inputs."""

    def __init__(self, subject: str, dtype: str, ops: tuple[str, ...], make: Callable[[], Made], level: Level) -> None:
        self.subject = subject
        self.dtype = dtype
        self.ops = ops
        self.make = make
        self.level = level
        self.needs: tuple[str, ...] = ()


def row(subject: str, op: str, *args: Any, level: Level = Level.L1, keep: int | None = None, **named: Any) -> Row:
    """A graph of one op: tensors among the arguments, also in lists, are its inputs; functions give large tensors.

    ``keep``: the results that count, where others are not defined.
    """
    first = next(x for x in _flat((args, named)) if isinstance(x, torch.Tensor) or callable(x))
    dtype = _name(first) if isinstance(first, torch.Tensor) else first.keywords["dtype"].value

    def make() -> Made:
        b, inputs = Builder(subject), list[Any]()

        def given(x: Any) -> Any:
            if isinstance(x, list | tuple):
                return [given(item) for item in x]
            x = x() if callable(x) and not isinstance(x, torch.Tensor) else x
            if not isinstance(x, torch.Tensor):
                return x
            inputs.append(x)
            return b.input(TensorType(DType(_name(x)), tuple(x.shape), _strides(x)))

        called = [given(x) for x in args]
        results = b.ops(op, *called, **{k: given(v) for k, v in named.items()})
        for result in results[:keep]:
            b.output(result)
        return b.graph(), inputs

    return Row(subject, dtype, (op,), make, level)


def row_of(
    subject: str,
    build: Callable[..., Value],
    *inputs: Any,
    types: Sequence[str] = (),
    level: Level = Level.L1,
) -> Row:
    """A graph that ``build`` makes from a builder and the inputs' values. ``types``: if not their own."""

    def make() -> Made:
        b = Builder(subject)
        own = [TensorType(DType(_name(x)), tuple(x.shape), _strides(x)) for x in inputs]
        b.output(build(b, *(b.input(t) for t in types or own)))
        return b.graph(), list(inputs)

    found = Row(subject, _name(next(x for x in inputs if isinstance(x, torch.Tensor))), (), make, level)
    found.needs = ("dynamic_shapes",) if any(any(c.isalpha() for c in t.partition("[")[2]) for t in types) else ()
    return found


def _tensor(dtype: torch.dtype, *values: Any) -> torch.Tensor:
    """The values, or the one list of them, as a tensor."""
    return torch.tensor(values[0] if len(values) == 1 and isinstance(values[0], list) else list(values), dtype=dtype)


f16 = functools.partial(_tensor, torch.float16)
f32 = functools.partial(_tensor, torch.float32)
c64 = functools.partial(_tensor, torch.complex64)
f64 = functools.partial(_tensor, torch.float64)
bf16 = functools.partial(_tensor, torch.bfloat16)
i8 = functools.partial(_tensor, torch.int8)
i16 = functools.partial(_tensor, torch.int16)
i32 = functools.partial(_tensor, torch.int32)
i64 = functools.partial(_tensor, torch.int64)
u8 = functools.partial(_tensor, torch.uint8)
b1 = functools.partial(_tensor, torch.bool)


def ramp(*shape: int, dtype: DType = DType.f32, low: float = -2.0, high: float = 3.0) -> torch.Tensor:
    """Different numbers in no order, the same everywhere: multiples of the golden ratio, from ``low`` to ``high``."""
    steps = torch.arange(1, 1 + math.prod(shape), dtype=torch.float64)
    return (low + (high - low) * (steps * 0.6180339887498949 % 1.0)).reshape(shape).to(torch_dtype(dtype))


def _flat(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return _flat(list(x.values()))
    return [leaf for item in x for leaf in _flat(item)] if isinstance(x, list | tuple) else [x]


def _name(x: torch.Tensor) -> str:
    return next(d.value for d in DType if torch_dtype(d) is x.dtype)


def _strides(x: torch.Tensor) -> tuple[int, ...] | None:
    return None if x.is_contiguous() else tuple(x.stride())
