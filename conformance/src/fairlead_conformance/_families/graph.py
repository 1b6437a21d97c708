"""Graphs whose shape is the difficulty: order and identity of inputs and outputs, long chains, sizes, layouts.

The ops are the simplest there are, so that a backend that fails has misread the graph.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

import fairlead
from fairlead_conformance._case import Case, Level
from fairlead_conformance._families._graph_shapes import SHAPES, Shape
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._inputs import drawn
from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_NO_NODES = "no_nodes"
"""The one graph that never reaches a backend: core answers it."""

_LAYOUTS_OF = ("one_node", "inputs_of_one_shape", "an_input_used_twice", "mixed_dtypes", "weights", "odd_sizes")
"""The graphs that run on every layout of their inputs."""


def cases() -> Sequence[Case]:
    found = [_case(name, shape) for name, shape in SHAPES.items()]
    found += [_case(name, SHAPES[name], layout) for name in _LAYOUTS_OF for layout in _LAYOUTS]
    return [*found, Case(id=f"graph/{_NO_NODES}/f32/s000", level=Level.L1, dtypes=("f32",))]


def _case(name: str, shape: Shape, layout: str = "") -> Case:
    return Case(
        id=f"graph/{name}/{shape.dtypes[0]}/s000" + (f"~{layout}" if layout else ""),
        level=shape.level,
        needs=shape.needs,
        dtypes=shape.dtypes,
        cost=shape.cost,
        mandatory=shape.mandatory and not layout,
    )


def run(case: Case, subject: Subject, seen: Observation) -> None:
    if case.subject == _NO_NODES:
        _no_nodes(subject, seen)
        return
    shape = SHAPES[case.subject]
    graph = shape.graph()
    seed = zlib.crc32(f"{case.id} {subject.seed}".encode())
    first, *more = [drawn(graph, seed + i, sizes) for i, sizes in enumerate(shape.sizes)]
    if case.variant:
        first = [_LAYOUTS[case.variant](x) if isinstance(x, torch.Tensor) else x for x in first]
    check_graph(graph, first, subject, seen, more=more)


def _no_nodes(subject: Subject, seen: Observation) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[Any, ...]:
        return y, x, None

    compiled: Callable[..., Any] = fairlead.compile(program, backend=subject.name)
    x, y = (torch.ones(3, device=subject.place) for _ in range(2))
    with torch.no_grad():
        results = compiled(x, y)
    seen.compared += len(results)
    if results[0] is not y or results[1] is not x or results[2] is not None:
        raise Failed(Status.FAIL_MISMATCH, "values", "the inputs come back as something else")


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x.permute(*reversed(range(x.dim()))).contiguous().permute(*reversed(range(x.dim())))


def _offset(x: torch.Tensor) -> torch.Tensor:
    """Behind other numbers in the same memory, which are not to be read."""
    return _within(x, (7 + x.numel(),), lambda memory: memory[7:].view(x.shape))


def _stepped(x: torch.Tensor) -> torch.Tensor:
    """Every other element of a larger tensor, in each dimension."""
    larger = tuple(2 * n for n in x.shape)
    return _within(x, larger, lambda memory: memory[tuple(slice(None, None, 2) for _ in x.shape)])


def _expanded(x: torch.Tensor) -> torch.Tensor:
    """One row in memory, for all rows."""
    return x[:1].expand(x.shape) if x.dim() and x.shape[0] else x


def _within(x: torch.Tensor, shape: tuple[int, ...], view: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    filler = torch.nan if x.is_floating_point() else 1
    place = view(torch.full(shape, filler, dtype=x.dtype))
    place.copy_(x)
    return place


_LAYOUTS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = MappingProxyType(
    {"transposed": _transposed, "offset": _offset, "stepped": _stepped, "expanded": _expanded}
)
