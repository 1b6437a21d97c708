"""Split a graph by support into Parts, each of which one backend compiles."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from fairlead._subgraph import subgraph
from fairlead.backend import Backend, Support
from fairlead.ir import (
    DType,
    Graph,
    Node,
    Role,
    TensorType,
    Value,
)
from fairlead.passes import communicates, draws, is_view, shown_views
from fairlead.placement import NodePlacement, Why

__all__ = ["DRAWS", "NO_RANDOM_NUMBERS", "Assignment", "Part", "assign", "split", "subgraph", "verdict"]

DRAWS = "eager"
"""The backend that draws random numbers and communicates for those that do not, makes the views that outputs are, and
runs declined Parts that are too small to fuse."""

NO_RANDOM_NUMBERS = Support.no("random numbers")

_GENERATOR_STATE = frozenset({"hop.run_and_save_rng_state", "hop.run_with_rng_state"})
"""Ops that read or set the state of torch's own generator."""

_LEAST_NODES = 4

_MOST_ORDERS = 24

_Waiting: TypeAlias = "list[tuple[Node, str]]"

_Groups: TypeAlias = "list[tuple[str, list[Node]]]"


class Assignment(msgspec.Struct, frozen=True):
    """Which backend runs each node of a graph, in order of the nodes."""

    backends: tuple[str, ...]
    nodes: tuple[NodePlacement, ...]


class Part(msgspec.Struct, frozen=True):
    """A graph of its own for one backend. Its values have the ids of the whole graph's."""

    backend: str
    graph: Graph


def verdict(
    backend: Backend[object],  # type: ignore[type-var]
    node: Node,
    kind: str,
    *,
    eager_rng: bool = False,
    is_step: bool = False,
) -> Support:
    """What the backend's capabilities and its ``supports`` say of a node. What ``supports`` raises passes through.

    A node with regions is run by one backend as a whole: it has to take every node in them as well. With ``eager_rng``
    no backend but `DRAWS` draws, whatever its capabilities are. ``is_step``: the node is of a whole training step.
    """
    capabilities = backend.capabilities
    if eager_rng and backend.name != DRAWS and draws(node):
        return NO_RANDOM_NUMBERS
    if kind != "inference" and not capabilities.training:
        return Support.no("no training graphs")
    if is_step and not capabilities.training_steps:
        return Support.no("no whole training steps")
    if draws(node) and (not capabilities.rng or (node.op in _GENERATOR_STATE and backend.name != DRAWS)):
        return NO_RANDOM_NUMBERS
    symbolic = False
    for value in (*node.operands(), *(r for r in node.results if r is not None)):
        if not isinstance(value.type, TensorType):
            continue
        if value.type.dtype not in capabilities.dtypes:
            return Support.no(f"dtype {value.type.dtype}")
        device = value.type.device.partition(":")[0]
        if device not in capabilities.devices and "*" not in capabilities.devices:
            return Support.no(f"device {device}")
        symbolic = symbolic or not value.type.is_static
    if symbolic and not capabilities.dynamic_shapes:
        return Support.no("dynamic shapes")
    answer = backend.supports(node)
    inner = (verdict(backend, n, kind) for region in node.regions for n in region.nodes)
    declined = next((a for a in inner if not a.accepted), None) if answer.accepted else None
    return answer if declined is None else Support.no(f"in a region: {declined.reason}", declined.level)


def assign(
    graph: Graph,
    first: str,
    fallback: Sequence[str],
    support: Callable[[str, Node], Support],
    *,
    saves_views: bool = False,
) -> Assignment:
    """Ask ``first`` for each node, then the backends of ``fallback`` in turn. What nobody takes has the backend "".

    Four things that `DRAWS` does are no fallback: it draws the random numbers that ``first`` does not draw itself, it
    runs the collectives that ``first`` does not, it makes the views that outputs are, because only torch's share the
    memory that eager's do, and it computes what follows from Python floats alone, which torch passes as tensors of one
    64-bit number, where ``first`` has no such.
    With ``saves_views``, ``first`` is left the views of its own results whose sharing of memory nobody sees.
    """
    numbers = set() if first == DRAWS else _numbers(graph)
    views = set() if first == DRAWS else shown_views(graph)
    if saves_views:
        views -= _unseen(graph, views)
    backends: list[str] = []
    placed: list[NodePlacement] = []
    for node in graph.nodes:
        if id(node) in views:
            backends.append(DRAWS)
            placed.append(NodePlacement(node.op, DRAWS, Why.view, "an output is a view", node.location))
            continue
        answer = support(first, node)
        if answer.accepted:
            taker, why, reason = first, Why.native, ""
        elif answer == NO_RANDOM_NUMBERS:
            taker, why, reason = DRAWS, Why.random, "torch draws it"
        elif communicates(node) and not node.regions:
            taker, why, reason = DRAWS, Why.collective, "torch.distributed communicates"
        elif id(node) in numbers:
            taker, why, reason = DRAWS, Why.number, "one number, which torch computes"
        else:
            taker = next((n for n in fallback if support(n, node).accepted), "")
            why, reason = Why.declined, answer.reason or "no reason given"
        backends.append(taker)
        placed.append(NodePlacement(node.op, taker, why, reason, node.location, _within(node)))
    return Assignment(tuple(backends), tuple(placed))


def _unseen(graph: Graph, views: set[int]) -> set[int]:
    """Of views, by the identity of their nodes, those of what nodes compute whose sharing of memory nobody sees.

    What a forward saves, nothing but its backward sees; and of memory that one output alone shows, nobody sees more.
    """
    inputs = {i.value.id for i in graph.inputs}
    origin: dict[int, int] = {}
    for node in graph.nodes:
        if id(node) in views:
            viewed = next(node.operands()).id
            origin.update((r.id, origin.get(viewed, viewed)) for r in node.results if r is not None)
    visible = {o.value.id for o in graph.outputs if isinstance(o.value, Value) and o.role is not Role.saved}
    shown = Counter(origin.get(i, i) for i in visible)
    found = set()
    for node in reversed(graph.nodes):
        if id(node) not in views:
            continue
        results = {r.id for r in node.results if r is not None}
        root = origin[min(results)]
        if root not in inputs and (shown[root] <= 1 or not results & visible):
            found.add(id(node))
        elif results & visible:
            visible.update(v.id for v in node.operands())
    return found


def _numbers(graph: Graph) -> set[int]:
    """The nodes, by identity, that compute single numbers from nothing but 64-bit ones that are inputs."""
    known = {i.value.id for i in graph.inputs if _is_number(i.value) and i.value.tensor.dtype is DType.f64}
    found: set[int] = set()
    for node in graph.nodes:
        results = [r for r in node.results if r is not None]
        if all(v.id in known for v in node.operands()) and all(map(_is_number, results)) and not node.regions:
            found.add(id(node))
            known.update(r.id for r in results)
    return found


def _is_number(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.shape == () and value.type.device == "cpu"


def _within(node: Node) -> tuple[str, ...]:
    """The ops in a node's regions, from the outermost in."""
    return tuple(op for region in node.regions for n in region.nodes for op in (n.op, *_within(n)))


def split(graph: Graph, backends: Sequence[str], first: str) -> tuple[Part, ...]:
    """The Parts in the order in which they run.

    Alternates between backends, each time with every node of that backend that is ready, in program order; begins
    with the backend that leads to the fewest Parts. Random numbers are drawn in the order of the program, whoever
    draws them, and so do processes communicate. Views of inputs are made where they are read.
    """
    names = sorted(set(backends), key=lambda name: (name == first, name))  # in doubt what others compute comes first
    orders = itertools.islice(itertools.permutations(names), _MOST_ORDERS)
    candidates = [_merged(_groups(graph, backends, order), first) for order in orders]
    groups = min((_merged(_views_late(graph, groups), first) for groups in candidates), key=len)
    return tuple(
        Part(name, subgraph(graph, nodes, f"{graph.name}_{index}")) for index, (name, nodes) in enumerate(groups)
    )


def _groups(graph: Graph, backends: Sequence[str], order: Sequence[str]) -> _Groups:
    known = {i.value.id for i in graph.inputs}
    waiting = list(zip(graph.nodes, backends, strict=True))
    groups: _Groups = []
    while waiting:
        for name in order:
            taken, waiting = _ready(waiting, name, known)
            if taken:
                groups.append((name, taken))
    return groups


def _ready(waiting: _Waiting, name: str, known: set[int]) -> tuple[list[Node], _Waiting]:
    """The nodes of one backend that can run now, whose results become known, and all others.

    A draw waits for every draw before it, and a collective for every collective.
    """
    taken: list[Node] = []
    left: _Waiting = []
    waiting_kinds: set[str] = set()
    for node, owner in waiting:
        kinds = _ordered_kinds(node)
        if owner == name and all(v.id in known for v in node.operands()) and not kinds & waiting_kinds:
            taken.append(node)
            known.update(r.id for r in node.results if r is not None)
        else:
            left.append((node, owner))
            waiting_kinds |= kinds
    return taken, left


def _views_late(graph: Graph, groups: _Groups) -> _Groups:
    """The groups, with views of inputs in the last group that may make them and comes no later than what reads them.

    The transposes of weights in a backward are ready before anything else is, and would be results of a Part of their
    own, which are copies. A view computes nothing: besides its own backend, `DRAWS` may make it.
    """
    known = {i.value.id for i in graph.inputs}
    returned = {v.id for v in graph.output_values()}
    place = {id(node): k for k, (_, nodes) in enumerate(groups) for node in nodes}
    readers: dict[int, list[Node]] = defaultdict(list)
    views: list[Node] = []
    for node in graph.nodes:
        for value in node.operands():
            readers[value.id].append(node)
        if is_view(node.op) and all(v.id in known for v in node.operands()):
            known.update(r.id for r in node.results if r is not None)
            views.append(node)
    for node in reversed(views):
        results = {r.id for r in node.results if r is not None}
        read = [place[id(reader)] for result in results for reader in readers[result]]
        if read and results.isdisjoint(returned):
            own = place[id(node)]
            makers = {groups[own][0], DRAWS}
            place[id(node)] = max(k for k in range(own, min(read) + 1) if groups[k][0] in makers)
    moved: list[list[Node]] = [[] for _ in groups]
    for node in graph.nodes:
        moved[place[id(node)]].append(node)
    return [(name, nodes) for (name, _), nodes in zip(groups, moved, strict=True) if nodes]


def _ordered_kinds(node: Node) -> set[str]:
    """Of which kinds a node is that keep their order among themselves."""
    return {kind for kind, is_one in (("draw", draws), ("collective", communicates)) if is_one(node)}


def _worth_compiling(name: str, nodes: list[Node], first: str) -> str:
    return DRAWS if name != first and len(nodes) < _LEAST_NODES else name


def _merged(groups: _Groups, first: str) -> _Groups:
    """The groups with neighbours of one backend as one, and those that are too small to fuse run by `DRAWS`."""
    merged: _Groups = []
    for owner, nodes in groups:
        name = _worth_compiling(owner, nodes, first)
        if merged and merged[-1][0] == name:
            merged[-1] = (name, merged[-1][1] + nodes)
        else:
            merged.append((name, nodes))
    return merged
