"""The errors of the pipeline, put together from what is known where they happen."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fairlead import ir
from fairlead._pairs import command
from fairlead._registry import registry
from fairlead.backend import Options
from fairlead.errors import (
    AccuracyError,
    CompileError,
    DeviceError,
    FairleadError,
    FallbackBudgetError,
    RegistryError,
    RunError,
    SupportsError,
)
from fairlead.ir import Graph, Node, TensorType, Value, node_text
from fairlead.partition import Part
from fairlead.placement import GraphPlacement

if TYPE_CHECKING:
    import torch

    from fairlead._accuracy import Verdict

_log = logging.getLogger("fairlead.compile")

_MOST_BYTES = 2**28
"""Of the inputs that are written beside a graph whose numbers are wrong; inputs of more are drawn anew."""


class Target(NamedTuple):
    """What runs a Part: a backend by name, and its options."""

    name: str
    options: Options


def supports_error(name: str, node: Node, cause: Exception) -> SupportsError:
    """The backend raised where it has to answer."""
    return SupportsError(
        f"backend {name!r} raised {_text(cause)} when asked about `{node_text(node)}`",
        where=f"{_wheel(name)}; {node.location or 'unknown line'}",
        next="report it to the backend's vendor; allow fallback to run the node elsewhere",
    )


def compile_error(target: Target, part: Part, constants: Mapping[int, torch.Tensor], cause: Exception) -> FairleadError:
    """The backend raised while compiling; the Part is kept as a file."""
    if isinstance(cause, FairleadError):
        return cause
    path = _replay_file(part, constants)
    kept = "the graph could not be written"
    if path is not None:
        kept = f"{command('replay', str(path), *target)} shows it again"
    return CompileError(
        f"backend {target.name!r} raised {_text(cause)} while compiling {len(part.graph.nodes)} nodes",
        where=f"{_wheel(target.name)}; {_first_location(part)}",
        next=f"{kept}; allow fallback to run the Part elsewhere",
    )


_OF_INPUTS = IndexError, ZeroDivisionError
"""What executables raise for numbers that torch refuses."""


def run_error(part: Part, cause: Exception, *, is_final: bool) -> RunError:
    """The executable raised; where that ``is_final``, the Part has had effects, and nothing else may run it."""
    elsewhere = "allow fallback to run the Part elsewhere"
    nowhere = "it may have communicated, or written or let go of inputs, so no other backend runs it"
    report = "report it to the backend's vendor"
    if isinstance(cause, _OF_INPUTS):
        report = f"correct the inputs, where eager mode refuses them as well, or {report}"
    return RunError(
        f"backend {part.backend!r} raised {_text(cause)} while running {len(part.graph.nodes)} nodes",
        where=f"{_wheel(part.backend)}; {_first_location(part)}",
        next=f"{report}; {nowhere if is_final else elsewhere}",
    )


def part_accuracy_error(
    part: Part, ran_on: Target, inputs: Sequence[Any], verdict: Verdict, *, baked: bool
) -> AccuracyError:
    """A Part gave wrong numbers for these inputs; both are kept as a file."""
    stale = "after writes to weights that torch does not count call refresh(); else " if baked else ""
    return AccuracyError(
        f"backend {ran_on.name!r} is wrong in Part {part.graph.name} of {len(part.graph.nodes)} nodes: "
        f"{verdict.problem}",
        where=f"{_wheel(ran_on.name)}; {_location_of(part.graph, verdict)}",
        next=f"{stale}{_bisecting(part.graph, ran_on, inputs)}",
    )


def graph_accuracy_error(graph: Graph, backend: Target, inputs: Sequence[Any], verdict: Verdict) -> AccuracyError:
    """A graph gave wrong numbers for these inputs although none of its Parts did."""
    return AccuracyError(
        f"graph {graph.name} is wrong on backend {backend.name!r}, though each of its Parts is right: "
        f"{verdict.problem}",
        where=f"{_wheel(backend.name)}; {_location_of(graph, verdict)}",
        next="after writes to weights that torch does not count call refresh(); else "
        f"{_bisecting(graph, backend, inputs)}",
    )


def _bisecting(graph: Graph, backend: Target, inputs: Sequence[Any]) -> str:
    path = _file(f"{backend.name}-{graph.name}", graph, _fitting(graph, inputs), "inline")
    sizes = {symbol.name: symbol.read(inputs) for symbol in graph.symbols} if path else {}
    bisecting = command("bisect", str(path or "MODEL"), *backend, sizes)
    return f"{bisecting} finds the smallest graph that shows it"


def _fitting(graph: Graph, inputs: Sequence[Any]) -> dict[int, torch.Tensor]:
    """The inputs that a file can hold: tensors whose sizes are known; none where they are too many bytes."""
    found = {
        i: x.detach()
        for i, (x, item) in enumerate(zip(inputs, graph.inputs, strict=True))
        if isinstance(item.value.type, TensorType) and item.value.type.is_static
    }
    return found if sum(x.nbytes for x in found.values()) <= _MOST_BYTES else {}


def _location_of(graph: Graph, verdict: Verdict) -> str:
    """The user's line that the first wrong output stems from, or the graph's first."""
    made = [o.value for o in graph.outputs if isinstance(o.value, Value) and isinstance(o.value.type, TensorType)]
    producers = graph.producers()
    nodes = [producers[made[i].id] for i in verdict.outputs if made[i].id in producers]
    return str(next((n.location for n in (*nodes, *graph.nodes) if n.location), "unknown line"))


def out_of_memory(part: Part) -> str:
    """What torch's own error does not say: which Part was running."""
    return (
        f"while running {len(part.graph.nodes)} nodes of graph {part.graph.name} on backend {part.backend!r}\n"
        f"  from: {_wheel(part.backend)}; {_first_location(part)}\n"
        "  next: make the batch smaller, or checkpoint the module (torch.utils.checkpoint)"
    )


def device_error(name: str, placement: GraphPlacement) -> DeviceError:
    """The tensors are where the backend cannot go."""
    devices = sorted({n.reason.removeprefix("device ") for n in placement.nodes if n.reason.startswith("device ")})
    can = ", ".join(registry.get(name).capabilities.devices)
    return DeviceError(
        f"backend {name!r} cannot use tensors on {', '.join(devices)}",
        where=f"{_wheel(name)}, which runs on: {can}",
        next="move the model and its inputs, name another backend, or allow fallback",
    )


def budget_error(name: str, placement: GraphPlacement, budget: float | None) -> FallbackBudgetError:
    """More was declined than is allowed; the message names the first few reasons and the user's lines."""
    declines = placement.declines
    shown = "; ".join(f"{d.op} x{d.count} at {d.location or 'unknown line'}: {d.reason}" for d in declines[:5])
    more = f"; and {len(declines) - 5} more kinds" if len(declines) > 5 else ""
    count = sum(d.count for d in declines)
    allowed = "no fallback takes them" if budget is None else f"max_fallback={budget:g} allows less"
    return FallbackBudgetError(
        f"backend {name!r} declined {count} of {placement.total} nodes and {allowed}: {shown}{more}",
        where=f"{_wheel(name)}; graph {placement.name}",
        next="raise max_fallback or add to fallback, or change the lines named above",
    )


def _replay_file(part: Part, constants: Mapping[int, torch.Tensor]) -> Path | None:
    """The Part as a file that shows the failure again."""
    return _file(f"{part.backend}-{part.graph.name}", part.graph, constants, "random")


def _file(
    name: str, graph: Graph, tensors: Mapping[int, torch.Tensor], weights: Literal["inline", "random"]
) -> Path | None:
    """A graph as a file; in ``FAIRLEAD_DEBUG`` where that names a folder."""
    folder = Path(os.environ.get("FAIRLEAD_DEBUG") or Path(tempfile.gettempdir()) / "fairlead")
    path = folder / f"{name}-{ir.fingerprint(graph)[:12]}.fir"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ir.write(path, graph, dict(tensors), weights=weights)
    except (OSError, FairleadError) as error:
        _log.warning("could not write %s: %s", path, error)
        return None
    return path


def _wheel(name: str) -> str:
    try:
        return str(registry.wheel(name))
    except RegistryError:
        return f"backend {name!r}"


def _first_location(part: Part) -> str:
    return str(next((n.location for n in part.graph.nodes if n.location), "unknown line"))


def _text(cause: Exception) -> str:
    """A vendor's exception on one line."""
    text = re.sub(r"\s+", " ", str(cause)).strip()
    return f"{type(cause).__name__}: {text[:500]}" if text else type(cause).__name__
