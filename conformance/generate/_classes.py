"""What kind of graph a sample makes: has it one right result, and what becomes of edge values in it."""

from __future__ import annotations

from fairlead.ir import Graph, TensorType, opset
from fairlead.passes import draws
from fairlead_conformance._oracle import tells_open_places

__all__ = ["unfit", "variants_of"]

MOST_NODES = 150

_UNINITIALISED = ("aten.empty", "aten.new_empty", "aten.resize")

_MANY_RIGHT = frozenset({
    "aten._linalg_eigh.default", "aten._linalg_svd.default", "aten.linalg_eig.default", "aten.geqrf.default",
    "aten.linalg_qr.default", "aten.linalg_ldl_factor_ex.default", "aten.linalg_lstsq.default",
})  # fmt: skip
"""Factorisations whose results are unique only up to signs and order."""

_ROUNDING = frozenset({
    "aten.round.default", "aten.round.decimals", "aten.floor.default", "aten.ceil.default", "aten.trunc.default",
    "aten.frac.default", "aten._to_copy.default",
})  # fmt: skip

_ORDERING = frozenset({
    "aten.sort.stable", "aten.argmax.default", "aten.argmin.default", "aten.max.dim", "aten.min.dim",
    "aten.amax.default", "aten.amin.default",
})  # fmt: skip

_TIERS = frozenset({"base", "ext", "nn"})


def unfit(graph: Graph) -> str:
    """Why a graph is no case; empty where it is one."""
    nodes = list(graph.walk())
    if not nodes:
        return "it computes nothing"
    if any(opset.spec(node.op) is None for node in nodes):
        return "an op of it is not in the opset"
    if len(nodes) > MOST_NODES:
        return f"more than {MOST_NODES} nodes"
    if any(map(draws, nodes)):
        return "it draws random numbers"
    if any(node.op.startswith(_UNINITIALISED) for node in nodes):
        return "its result is uninitialised"
    if any(node.op in _MANY_RIGHT for node in nodes):
        return "it has more than one right result"
    if _reads_open_places(graph):
        return "it goes on with places of equal elements, which are left open"
    return ""


def _reads_open_places(graph: Graph) -> bool:
    """Whether a node reads a place that may be any of several: what comes of each is not known."""
    nodes = list(graph.walk())
    open_ = {r.id for n in nodes if tells_open_places(n) for r in n.results[1:] if r is not None}
    return any(v.id in open_ for n in nodes for v in n.operands())


def variants_of(graph: Graph) -> list[str]:
    """The edge values whose results are well defined for every op of the graph."""
    specs = [opset.spec(n.op) for n in graph.walk()]
    if any(spec is None or spec.tier not in _TIERS for spec in specs):
        return []
    classes = {spec.comparison for spec in specs if spec is not None}
    names = {n.op for n in graph.walk()}
    if not _first_is_real(graph):
        return ["intmin", "intmax", "intwide"] if classes <= {"exact"} else []
    found = ["nan", "zeros"]
    if "accumulation" not in classes:
        found += ["inf", "negzero"]
    if classes <= {"exact"}:
        found += ["denormal", "large"]
    if names & _ROUNDING:
        found.append("halves")
    if names & _ORDERING or any(map(tells_open_places, graph.walk())):
        found.append("ties")
    return found


def _first_is_real(graph: Graph) -> bool:
    types = [i.value.type for i in graph.inputs if isinstance(i.value.type, TensorType)]
    return bool(types) and types[0].dtype.is_floating
