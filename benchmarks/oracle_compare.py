"""How near the results of two interpreters are, and how far a change of the last place on the way moves them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import fairlead.numpy
from fairlead._torch_types import IR_DTYPES
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Value, opset
from fairlead.numpy import numpy_dtype

EPS = {DType.f64: 2.0**-52, DType.c128: 2.0**-52, DType.f32: 2.0**-23, DType.c64: 2.0**-23, DType.f16: 2.0**-10,
       DType.bf16: 2.0**-7}  # fmt: skip

RELATIVE, ABSOLUTE = 32, 8
"""Units in the last place: of the element, and of the largest element."""


@dataclasses.dataclass
class Run:
    """A graph, what it was called with, and what eager and the interpreter with torch made of it.

    Where the latter refused, ``torch`` is the error.
    """

    graph: Graph
    inputs: list[Any]
    eager: list[Any]
    torch: list[Any] | Exception


def to_numpy(x: Any) -> Any:
    """A tensor's elements as an array of their own."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    dtype = numpy_dtype(IR_DTYPES[x.dtype])
    if x.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        raw = x.reshape(-1).view(torch.uint8 if x.itemsize == 1 else torch.int16).numpy()
        return raw.view(dtype).reshape(tuple(x.shape)).copy()
    return x.numpy().copy()


def spec_of(node: Node) -> opset.OpSpec:
    found = opset.spec(node.op)
    assert found is not None, f"{node.op} is an op of the opset"
    return found


def is_exact(graph: Graph) -> bool:
    """Whether every op of a graph has one correct result, bit by bit."""
    specs = [opset.spec(node.op) for node in graph.nodes]
    return all(spec is not None and spec.comparison in ("exact", "ties") for spec in specs)


def same(x: Any) -> Any:
    return x


def evaluated(
    run: Run, change: Callable[[Any], Any] = same, model: Callable[[Node, list[Any]], Any] | None = None
) -> dict[int, Any]:
    """Every value of a graph by its number, each changed on its way.

    A ``model`` may compute a node in its own way, and gives None for those that it leaves alone.
    """
    values = {i.value.id: change(x) for i, x in zip(run.graph.inputs, run.inputs, strict=True)}
    for node in run.graph.nodes:
        operands = list({v.id: v for v in node.operands()}.values())
        results = [r for r in node.results if r is not None]
        found = model(node, [values[v.id] for v in operands]) if model else None
        if found is None:
            one = Graph("one", Kind.inference, tuple(map(Input, operands)), (node,), tuple(map(Output, results)))
            found = fairlead.numpy.run(one, [values[v.id] for v in operands])
        values.update((r.id, change(x)) for r, x in zip(results, found, strict=True))
    return values


def outputs_of(run: Run, values: dict[int, Any]) -> list[Any]:
    return [values[o.value.id] if isinstance(o.value, Value) else o.value for o in run.graph.outputs]


def ties(run: Run, found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the only outputs that differ are places of equal elements, whose order an op leaves open."""
    places = {
        n.results[1].id: n for n in run.graph.nodes if spec_of(n).comparison == "ties" and n.results[1] is not None
    }
    if not places:
        return False
    values = evaluated(run)
    for output, x, y in zip(run.graph.outputs, found, wanted, strict=True):
        if not difference([x], [y]):
            continue
        node = places.get(getattr(output.value, "id", -1))
        if node is None or x.shape != y.shape:
            return False
        source, dim = values[next(node.operands()).id], _dim(node)
        if difference(*([_picked(source, at, dim)] for at in (x, y)), exact=True):
            return False
    return True


def _dim(node: Node) -> Any:
    names = [p.name for p in opset.signature(spec_of(node).signature).parameters]
    return node.args[names.index("dim")]


def _picked(source: Any, at: Any, dim: int) -> Any:
    return np.take_along_axis(source, at if at.ndim == source.ndim else np.expand_dims(at, dim), dim)


def slack(run: Run, found: Sequence[Any]) -> list[Any]:
    """How far each output moves when each input and each node's results change in their last place."""
    rng = np.random.default_rng(0)
    moved = [np.zeros(np.shape(x)) for x in found]
    for _ in range(4):
        again = outputs_of(run, evaluated(run, lambda x: _shaken(x, rng)))
        for i, (x, y) in enumerate(zip(found, again, strict=True)):
            if isinstance(x, np.ndarray) and dtype_of(x) in EPS:
                gap = np.abs(widened(x) - widened(y))
                moved[i] = np.maximum(moved[i], np.where(np.isfinite(gap), gap, 0))
    return moved


def _shaken(x: Any, rng: np.random.Generator) -> Any:
    if not isinstance(x, np.ndarray) or dtype_of(x) not in EPS:
        return x
    up = np.unpackbits(np.frombuffer(rng.bytes((x.size + 7) // 8), np.uint8), count=x.size).reshape(x.shape)
    factors = np.array([1 - EPS[dtype_of(x)], 1 + EPS[dtype_of(x)]])
    return (widened(x) * factors[up]).astype(x.dtype)


def dtype_of(x: Any) -> DType:
    return next(d for d in DType if d.long_name == x.dtype.name)


def widened(x: Any) -> Any:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def difference(
    found: Sequence[Any], wanted: Sequence[Any], moved: Sequence[Any] | None = None, *, exact: bool = False
) -> str:
    """How the outputs differ; empty where they do not. ``moved`` is how far each element may be off on top."""
    for index, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
            if x is not y and x != y:
                return f"output {index} is {x}, not {y}"
            continue
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"output {index} is {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        gap = _gap(x, y, 0.0 if moved is None else moved[index], 0 if exact else 1)
        if gap:
            return f"output {index} ({x.dtype.name}{list(x.shape)}) {gap}"
    return ""


def _gap(x: Any, y: Any, moved: Any, units: float) -> str:
    if dtype_of(x).is_complex:
        return _gap(x.real.copy(), y.real.copy(), moved, units) or _gap(x.imag.copy(), y.imag.copy(), moved, units)
    wrong = apart(x, y, moved, units)
    if not wrong.any():
        return ""
    said = f"differs in {int(wrong.sum())} of {x.size}"
    if dtype_of(x) not in EPS:
        return said
    a, b = widened(x), widened(y)
    worst = np.unravel_index(np.argmax(np.where(wrong, np.nan_to_num(np.abs(a - b), nan=np.inf), -1)), a.shape)
    return f"{said}: {a[worst]} and not {b[worst]}"


def apart(x: Any, y: Any, moved: Any = 0.0, units: float = 1) -> Any:
    """Which elements of two real arrays are further apart than rounding takes them."""
    dtype = dtype_of(x)
    if dtype not in EPS:
        return x != y
    a, b = widened(x), widened(y)
    # Beyond the largest number of the type, the last place decides between it and infinity.
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        scale = float(np.max(np.abs(a), where=finite, initial=0.0))
        bound = units * EPS[dtype] * (RELATIVE * np.abs(a) + ABSOLUTE * scale) + 16 * moved
        return np.where(finite, np.abs(a - b) > bound, ~((a == b) | (np.isnan(a) & np.isnan(b))))
