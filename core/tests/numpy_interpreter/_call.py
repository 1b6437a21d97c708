"""One op on arrays, run by the NumPy interpreter: a graph of a single node, written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead.ir import Argument, DType, Graph, Input, Kind, Node, Output, TensorType, Value, verify
from fairlead.numpy import run

_BY_NAME = {d.long_name: d for d in DType}


def type_of(x: Any) -> TensorType:
    return TensorType(_BY_NAME[x.dtype.name], x.shape)


def call(op: str, *args: Any, gives: Any, strides: tuple[int, ...] | None = None, rng: Any = None) -> Any:
    """What an op makes of arrays and attributes.

    ``gives`` is an example of the result, or a list of them where the op has several; ``strides`` are declared for the
    first array.
    """
    inputs: list[Input] = []
    arrays: list[Any] = []

    def argument(x: Any) -> Argument:
        if isinstance(x, list):
            return tuple(map(argument, x))
        if not isinstance(x, np.ndarray | np.generic):
            return x  # type: ignore[no-any-return]
        declared = type_of(x)
        if not arrays and strides is not None:
            declared = TensorType(declared.dtype, declared.shape, strides)
        inputs.append(Input(Value(len(inputs), declared)))
        arrays.append(x)
        return inputs[-1].value

    given = tuple(map(argument, args))
    several = isinstance(gives, list)
    results = tuple(Value(100 + i, type_of(x)) for i, x in enumerate(gives if several else [gives]))
    node = Node(op, given, results)
    graph = Graph("g", Kind.inference, tuple(inputs), (node,), tuple(map(Output, results)))
    found = run(verify(graph), arrays, rng=rng)
    return list(found) if several else found[0]
