"""Where torch is not what NumPy is to be compared with: each op and dtype, why, and how a run shows that it is so.

A row explains a difference only if its own check holds for the graph at hand. A row that explains nothing in an entry
where it says that it does has no place here any more: ``oracle.py`` says so, and fails.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from oracle_compare import Run, apart, difference, evaluated, outputs_of, slack, widened

import fairlead.numpy
from fairlead import interpret
from fairlead.ir import DType, Graph, Node, Output, TensorType, Value
from fairlead_conformance._oracle._widen import widened as widened_graph

Check = Callable[[Run, Sequence[Any]], bool]


class Known(NamedTuple):
    """An op that torch has otherwise, in some dtypes; ``entries`` are those of OpInfo that show it."""

    op: str
    dtypes: Collection[DType]
    entries: Collection[str]
    reason: str
    holds: Check


def explanation(run: Run, found: Sequence[Any]) -> Known | None:
    """The row that explains why the results of a graph differ."""
    return next((row for row in KNOWN if _occurs(row, run.graph) and row.holds(run, found)), None)


def stale(entry: str, seen: Collection[Known]) -> list[str]:
    """A line for each row that an entry of OpInfo is said to show, and no longer does."""
    rows = (row for row in KNOWN if entry in row.entries and row not in seen)
    return [f"{entry} no longer shows that {row.reason} ({row.op})" for row in rows]


def _occurs(row: Known, graph: Graph) -> bool:
    nodes = [n for n in graph.nodes if n.op.startswith(row.op)]
    values = (v for n in nodes for v in (*n.operands(), *(r for r in n.results if r is not None)))
    return any(isinstance(v.type, TensorType) and v.type.dtype in row.dtypes for v in values)


def _is_rounding(run: Run, found: Sequence[Any]) -> bool:
    """Whether few elements are apart, and none where the same numbers are taken in float64."""
    assert not isinstance(run.torch, Exception), "torch has run the graph"
    for x, y, moved in zip(found, run.torch, slack(run, found), strict=True):
        if isinstance(x, np.ndarray) and np.mean(apart(x, y, moved)) > _FEW:
            return False
    graph = widened_graph(run.graph)
    arrays = [widened(x) for x in run.inputs]
    wanted = [x if x is None else x.numpy() for x in interpret.run(graph, [torch.from_numpy(x) for x in arrays])]
    ours = fairlead.numpy.run(graph, arrays)
    wide = Run(graph, arrays, wanted, wanted)
    return not difference(ours, wanted) or not difference(ours, wanted, slack(wide, ours))


def _cancels(run: Run, found: Sequence[Any]) -> bool:
    """Whether results are no further apart than two products that cancel are rounded: an eps of their magnitude."""
    assert not isinstance(run.torch, Exception), "torch has run the graph"
    floats = [widened(x) for x in (*run.inputs, *found) if isinstance(x, np.ndarray) and x.dtype.kind != "i"]
    largest = max((float(np.max(np.abs(x))) for x in floats if x.size), default=0.0)
    for x, y in zip(found, run.torch, strict=True):
        if isinstance(x, np.ndarray) and x.size:
            eps = np.finfo(np.float64 if x.dtype == np.float64 else np.float32).eps
            if np.max(np.abs(widened(x) - widened(y))) > 4 * eps * largest**2:
                return False
    return True


def _as_torch_rounds(model: Callable[[Node, list[Any]], Any]) -> Check:
    """Whether NumPy gives torch's results once it computes an op as torch's kernel does."""

    def holds(run: Run, found: Sequence[Any]) -> bool:
        assert not isinstance(run.torch, Exception), "torch has run the graph"
        with np.errstate(all="ignore"):
            again = outputs_of(run, evaluated(run, model=model))
        return not difference(again, run.torch)

    return holds


def _trigamma(node: Node, operands: list[Any]) -> Any:
    """ATen's ``trigamma`` (aten/src/ATen/native/Math.h): six steps, and three terms of the series."""
    if node.op != "aten.polygamma.default" or node.args[0] != 1:
        return None
    (x,) = operands
    dtype = x.dtype
    x = x.astype(np.float64 if dtype == np.float64 else np.float32)
    is_left = x < 0.5
    pi = x.dtype.type(np.pi)
    result = np.where(is_left, -((pi / np.sin(pi * x)) ** 2), 0).astype(x.dtype)
    x = np.where(is_left, 1 - x, x)
    for _ in range(6):
        result, x = result + 1 / (x * x), x + 1
    ixx = 1 / (x * x)
    result += (1 + 1 / (2 * x) + ixx * (1 / 6 - ixx * (1 / 30 - ixx * (1 / 42)))) / x
    return [np.where(is_left, -result, result).astype(dtype)]


def _histogram(node: Node, operands: list[Any]) -> Any:
    """ATen's ``histc`` (aten/src/ATen/native/cpu/HistogramKernel.cpp): the bin in the dtype of the elements."""
    if node.op != "aten.histc.default":
        return None
    x = np.ravel(operands[0])
    bins, low, high = (x.dtype.type(a) for a in node.args[1:])
    if low == high and x.size:
        low, high = np.min(x), np.max(x)
    if low == high:
        low, high = low - x.dtype.type(1), high + x.dtype.type(1)
    inside = x[(x >= low) & (x <= high)]
    place = ((inside - low) * bins / (high - low)).astype(np.int64)
    count = int(node.args[1])
    return [np.bincount(np.minimum(place, count - 1), minlength=count).astype(x.dtype)]


def _lacks_what_is_declared(run: Run, found: Sequence[Any]) -> bool:
    """Whether only outputs differ that torch left without the elements that they are declared to have."""
    assert not isinstance(run.torch, Exception), "torch has run the graph"
    kept = [i for i, x in enumerate(run.torch) if not _is_left_out(run.graph.outputs[i], x)]
    return not difference([found[i] for i in kept], [run.torch[i] for i in kept])


def _is_left_out(item: Output, x: Any) -> bool:
    is_tensor = isinstance(item.value, Value) and isinstance(item.value.type, TensorType)
    return is_tensor and isinstance(x, np.ndarray) and x.shape == (0,) and item.value.type.shape != (0,)


def completed(run: Run) -> Run:
    """The run with zeros for the inputs that `_embedding_bag` left without elements; no gradient reads them."""
    if not any(n.op.startswith(_BAGS) for n in run.graph.nodes):
        return run
    inputs = [
        np.zeros(item.value.type.shape, x.dtype)
        if isinstance(x, np.ndarray) and x.shape == (0,) and isinstance(item.value.type, TensorType)
        else x
        for item, x in zip(run.graph.inputs, run.inputs, strict=True)
    ]
    return dataclasses.replace(run, inputs=inputs)


_BAGS = "aten._embedding_bag"
_GRIDS = "aten.grid_sampler_"

_FEW = 1 / 8
"""The share of elements that may be apart: those so near to the middle between two pixels that rounding decides.

In bf16, a place among 12 pixels is right to 1/32, so that in three dimensions a tenth of the nearest pixels are others.
"""

KNOWN = (
    Known(
        "aten.polygamma.default",
        (DType.f64,),
        ("digamma", "polygamma.polygamma_n_1"),
        "torch's trigamma takes three terms of its series from 6 on, which is right to 5e-10",
        _as_torch_rounds(_trigamma),
    ),
    Known(
        "aten.histc.default",
        (DType.bf16,),
        ("histc",),
        "torch finds the bin of an element in the element's own dtype, so that bf16 lands in the bin beside",
        _as_torch_rounds(_histogram),
    ),
    Known(
        _GRIDS,
        (DType.bf16, DType.f32),
        ("nn.functional.grid_sample", "grid_sampler_2d", "grid_sampler_3d"),
        "torch rounds the place of a sample to its dtype: bf16 reads other pixels, f32 weighs them to 1e-5",
        _is_rounding,
    ),
    Known(
        "aten._upsample_bilinear2d_aa.default",
        (DType.f32,),
        ("_upsample_bilinear2d_aa",),
        "torch weighs the neighbours of a sample in its dtype, which is right to 1e-5 in f32",
        _is_rounding,
    ),
    Known(
        "aten.native_layer_norm",
        (DType.f64, DType.f32, DType.bf16),
        ("native_layer_norm",),
        "torch takes x * rstd + -mean * rstd, which is not 0 for a row of one element, nor exact for one of two",
        _cancels,
    ),
    Known(
        _BAGS,
        (DType.i64, DType.i32),
        ("nn.functional.embedding_bag",),
        "torch's CPU kernel leaves out the rows of maxima that nobody asks for, which its fake kernel declares",
        _lacks_what_is_declared,
    ),
)
