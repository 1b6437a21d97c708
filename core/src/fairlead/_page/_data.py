"""A graph as the page draws it: items (nodes, inputs, outputs) in a tree of groups, and edges between items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from fairlead._page._tree import Group, tree
from fairlead._page._verdicts import Verdict
from fairlead.ir import Graph, Input, Kind, Node, Role, TensorType, Value, node_text, type_text

__all__ = ["Item", "View", "view"]

WEIGHTS = frozenset({Role.parameter, Role.buffer, Role.constant})
_ARGUMENT = re.compile(r"^L\['\w+'\]\[(?:'(\w+)'|(\d+))\]$")
_AT_THE_TOP = frozenset({Role.user, Role.tangent})


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One box: a node, an input that is no weight, or an output.

    ``label`` and ``type`` are its two lines; ``text`` is the whole line of the text form. ``sources``: the items that
    it reads, with the type that it reads of each. ``weights``: the inputs of the module itself that it reads.
    """

    kind: str
    label: str
    group: int
    text: str
    type: str = ""
    dtype: str = ""
    line: str = ""
    path: str = ""
    sources: tuple[tuple[int, str], ...] = ()
    weights: tuple[str, ...] = ()
    elements: int = 0
    verdict: str = ""
    reason: str = ""


class View(msgspec.Struct, frozen=True):
    """One graph. Group 0 is the graph itself; ``nodes`` counts what its text has, those of regions too."""

    name: str
    kind: Kind
    nodes: int
    symbols: tuple[str, ...]
    groups: tuple[Group, ...]
    items: tuple[Item, ...]


class _Draft(msgspec.Struct):
    item: Item
    path: tuple[str, ...]


def view(graph: Graph, verdicts: Mapping[int, Verdict]) -> View:
    """The graph in the form that the page draws."""
    drafts = _drafts(graph, verdicts)
    groups, of = tree([draft.path for draft in drafts])
    items = tuple(msgspec.structs.replace(d.item, group=group) for d, group in zip(drafts, of, strict=True))
    symbols = tuple(f"{s.name} in [{s.lo}, {'inf' if s.hi is None else s.hi}]" for s in graph.symbols)
    return View(graph.name, graph.kind, len(list(graph.walk())), symbols, groups, items)


def _drafts(graph: Graph, verdicts: Mapping[int, Verdict], base: tuple[str, ...] = (), start: int = 0) -> list[_Draft]:
    """The items of a graph, those of a region right after its node; ``start`` is the number of the first one."""
    weights = {i.value.id: i for i in graph.inputs if i.role in WEIGHTS}
    paths = [(*base, *_segments(n)) for n in graph.nodes]
    readers = _readers(graph)
    drafts: list[_Draft] = []
    place: dict[int, int] = {}
    for each in graph.inputs:
        if each.role not in WEIGHTS:
            place[each.value.id] = start + len(drafts)
            drafts.append(_Draft(_input(each), _input_path(each, readers.get(each.value.id, []), paths) or base))
    first = len(drafts)
    for number, node in enumerate(graph.nodes):
        here = start + len(drafts)
        drafts.append(_Draft(_node(node, place, weights, verdicts.get(number)), paths[number]))
        for index, region in enumerate(node.regions):
            inside = (*paths[number], f"{_short(node.op)} {number}, region {index}")
            drafts += _drafts(region, {}, inside, start + len(drafts))
        place.update((r.id, here) for r in node.results if r is not None)
    made = {at: draft.path for at, draft in enumerate(drafts, start) if at - start >= first}
    return drafts + [_output(graph, number, place, made, base) for number in range(len(graph.outputs))]


def _output(
    graph: Graph, number: int, place: Mapping[int, int], made: Mapping[int, tuple[str, ...]], base: tuple[str, ...]
) -> _Draft:
    """Where its producer is; what the user gets stands at the top, and what only passes through stands together."""
    output = graph.outputs[number]
    value = output.value if isinstance(output.value, Value) else None
    at = place.get(value.id) if value else None
    path = base if output.role is Role.user else made.get(-1 if at is None else at, (*base, "passed on"))
    target = f" of {graph.inputs[output.target].name}" if output.target is not None else ""
    label, kind = f"{output.role}{target}", type_text(value.type) if value else ""
    text = f"output {number}: {label} {f'%{value.id}' if value else output.value}"
    sources = ((at, kind),) if at is not None else ()
    return _Draft(Item("out", label, 0, text, kind, _dtype(value), sources=sources), path)


def _readers(graph: Graph) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for value in node.operands():
            found.setdefault(value.id, []).append(number)
    return found


def _input(each: Input) -> Item:
    name = _ARGUMENT.sub(lambda m: m[1] or f"argument {m[2]}", each.name) or f"%{each.value.id}"
    text = f"in %{each.value.id} {each.role} {each.name!r} : {type_text(each.value.type)}"
    return Item("in", name, 0, text, type_text(each.value.type), _dtype(each.value), path=str(each.role))


def _input_path(each: Input, readers: Sequence[int], paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Where the only reader is; what several read stands at the top, and what the user gives too."""
    if each.role in _AT_THE_TOP or len(set(readers)) != 1:
        return ()
    return paths[readers[0]]


def _node(node: Node, place: Mapping[int, int], weights: Mapping[int, Input], verdict: Verdict | None) -> Item:
    results = [r for r in node.results if r is not None]
    read = {v.id: v for v in node.operands()}
    own = [weights[id_] for id_ in read if id_ in weights]
    location = node.location
    return Item(
        kind="op",
        label=_short(node.op),
        group=0,
        text=node_text(node),
        type=", ".join(type_text(r.type) for r in results),
        dtype=_dtype(results[0] if results else None),
        line=str(location or ""),
        path=location.module_path if location else "",
        sources=tuple((place[id_], type_text(v.type)) for id_, v in read.items() if id_ in place),
        weights=tuple(f"%{i.value.id} {i.name} : {type_text(i.value.type)}" for i in own),
        elements=sum(_elements(i.value) for i in own),
        verdict=verdict[0] if verdict else "",
        reason=verdict[1] if verdict else "",
    )


def _short(op: str) -> str:
    return op.removeprefix("aten.").removesuffix(".default")


def _dtype(value: Value | None) -> str:
    return str(value.type.dtype) if value is not None else ""


def _elements(value: Value) -> int:
    type_, count = value.type, 1
    if not isinstance(type_, TensorType):
        return 0
    for dim in type_.shape:
        count *= dim if isinstance(dim, int) else 1
    return count


def _segments(node: Node) -> tuple[str, ...]:
    """The module path in steps; ``layer.0`` is one step. Without a module, the function of the source line is one."""
    location = node.location
    if location is None:
        return ()
    if location.module_path:
        return tuple(_steps(location.module_path.split(".")))
    return (f"{PurePath(location.file).name}: {location.function}",) if location.function else ()


def _steps(names: Sequence[str]) -> Iterator[str]:
    held = ""
    for name in names:
        if name.isdigit() and held:
            yield f"{held}.{name}"
            held = ""
            continue
        if held:
            yield held
        held = name
    if held:
        yield held
