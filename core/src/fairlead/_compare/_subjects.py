"""From what to measure to a callable, and what torch and Fairlead tell of the graphs behind it.

The counters of Dynamo that are read here exist unchanged in torch 2.8 to 2.13.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import torch

from fairlead._compare._data import PlacementSummary
from fairlead._compare._messages import Subject
from fairlead._compare._step import Call
from fairlead._models import Model
from fairlead.placement import Decline, Placement

__all__ = ["compiled", "graphs", "placement"]


def compiled(subject: Subject, model: Model, *, fallback: bool, share_weights: bool) -> Call:
    """The model behind this subject. What is imported for it is imported here, so that the first call pays for it."""
    match subject.via:
        case "eager":
            return model.module
        case "torch":
            return torch.compile(model.module, backend=subject.name)
        case "path":
            module, _, function = subject.name.partition(":")
            call: Call = getattr(importlib.import_module(module), function)(model)
            return call
    from fairlead._user import compile as compile_

    budget = None if fallback else 0
    return compile_(model.module, backend=subject.name, max_fallback=budget, share_weights=share_weights)


def graphs() -> int:
    """How many graphs Dynamo has handed to a compiler in this process."""
    return int(_counters()["stats"]["unique_graphs"])


def placement(subject: Subject, call: Call, graphs_of_first_call: int) -> PlacementSummary:
    """Where the nodes of every graph went, as far as the subject tells."""
    if subject.via in ("eager", "path"):
        return PlacementSummary()
    breaks, recompiled = sum(_counters()["graph_break"].values()), graphs() - graphs_of_first_call
    if subject.via == "torch":
        return PlacementSummary(graphs_of_first_call, breaks, recompiled)
    report: Placement = call.fairlead.placement  # type: ignore[attr-defined]
    # What was placed here and then did not compile has run elsewhere: the parts know, the nodes do not.
    native = sum(part.nodes for graph in report.graphs for part in graph.parts if part.backend == graph.backend)
    total = sum(graph.total for graph in report.graphs)
    declines = (*report.declines, *_moved(report))
    return PlacementSummary(graphs_of_first_call, breaks, recompiled, min(native, total), total, declines)


def _moved(report: Placement) -> Iterator[Decline]:
    parts = (part for graph in report.graphs for part in graph.parts if part.note)
    yield from (Decline("nodes of one part", part.note, part.backend, part.nodes) for part in parts)


def _counters() -> Any:
    from torch._dynamo.utils import counters

    return counters
