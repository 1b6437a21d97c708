"""What differs between two graphs, line by line: the explanation of two unequal fingerprints."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from fairlead.ir._alignment import align_inputs, align_nodes, left_over, local_key
from fairlead.ir._canonical import fingerprint
from fairlead.ir._model import Graph, Input, Module, Node, Output, Symbol, Value
from fairlead.ir._renumber import renumbered
from fairlead.ir._text import node_text, type_text


class Change(enum.StrEnum):
    """What became of a thing from the first graph to the second."""

    added = "added"
    removed = "removed"
    moved = "moved"
    changed = "changed"


class Difference(msgspec.Struct, frozen=True):
    """One difference: ``where`` names the thing in canonical numbering, ``what`` the part of it that changed.

    ``before`` and ``after`` are how it reads in the first and in the second graph; empty where it is in one alone.
    ``line`` is the user's source line, where a node has one.
    """

    change: Change
    where: str
    what: str = ""
    before: str = ""
    after: str = ""
    line: str = ""

    def __str__(self) -> str:
        at = f"  ({self.line})" if self.line else ""
        match self.change:
            case Change.added:
                return f"+ {self.where}: {self.after}{at}"
            case Change.removed:
                return f"- {self.where}: {self.before}{at}"
            case Change.moved:
                return f"> {self.where}: {self.after}{at}"
        return f"~ {self.where}: {self.what}: {self.before} -> {self.after}{at}"


class Diff(msgspec.Struct, frozen=True):
    """What `diff` found. ``fingerprints`` of both; they are equal exactly where ``differences`` is empty.

    ``names`` says that graphs with one fingerprint still have other names, numbers of values or source lines.
    """

    fingerprints: tuple[str, str]
    differences: tuple[Difference, ...] = ()
    names: bool = False

    @property
    def equal(self) -> bool:
        """Whether the two mean the same: equal fingerprints."""
        return self.fingerprints[0] == self.fingerprints[1]

    def __str__(self) -> str:
        if self.equal:
            note = "; only names, numbers or source lines differ" if self.names else ""
            return f"equal, fingerprint {self.fingerprints[0]}{note}"
        return "\n".join(map(str, self.differences))


Content = TypeVar("Content", Graph, Module)


def diff(a: Content, b: Content) -> Diff:
    """What differs between two verified graphs or modules; names, numbers of values and source lines do not count.

    The graphs of modules are compared in their order.

    >>> from fairlead.ir import DType, Kind, TensorType
    >>> x, y = (Value(i, TensorType(DType.f32, (2,))) for i in range(2))
    >>> a, b = (Graph("g", Kind.inference, (Input(x),), (Node(op, (x,), (y,)),), (Output(y),)) for op in ("a.b", "a.c"))
    >>> print(diff(a, b))
    - node 0: %1 = a.b(%0) : f32[2]
    + node 0: %1 = a.c(%0) : f32[2]
    ~ output 0: value: %1 (a.b) -> %1 (a.c)
    """
    prints = fingerprint(a), fingerprint(b)
    if prints[0] == prints[1]:
        return Diff(prints, names=repr(a) != repr(b))
    if isinstance(a, Module) and isinstance(b, Module):
        return Diff(prints, tuple(_of_modules(a, b)))
    return Diff(prints, tuple(_Comparison(a, b).differences()))


def _of_modules(a: Module, b: Module) -> Iterator[Difference]:
    for op in sorted(a.ops.keys() & b.ops.keys()):
        before, after = a.ops[op].version, b.ops[op].version
        if before != after:
            yield Difference(Change.changed, f"op {op}", "version", str(before), str(after))
    for op in sorted(a.ops.keys() ^ b.ops.keys()):
        change = Change.removed if op in a.ops else Change.added
        version = (a.ops.get(op) or b.ops[op]).version
        shown = ("", f"version {version}") if change is Change.added else (f"version {version}", "")
        yield Difference(change, f"op {op}", "", *shown)
    for number, (x, y) in enumerate(itertools.zip_longest(a.graphs, b.graphs)):
        where = f"graph {number}"
        if x is None or y is None:
            change, graph = (Change.added, y) if x is None else (Change.removed, x)
            text = f"{graph.kind}, {len(graph.nodes)} nodes"
            yield Difference(change, where, "", *(("", text) if x is None else (text, "")))
        elif fingerprint(x) != fingerprint(y):
            yield from _Comparison(x, y, f"{where} ").differences()


class _Comparison:
    """Two graphs side by side, in canonical numbering."""

    def __init__(self, a: Graph, b: Graph, prefix: str = "") -> None:
        self.prefix = prefix
        self.lines = [[str(n.location or "") for n in g.nodes] for g in (a, b)]
        self.inputs, self.moved_inputs = align_inputs(a, b)
        self.nodes = align_nodes(a, b)
        self.a, self.b = renumbered(a), renumbered(b)
        keys = [[local_key(n) for n in g.nodes] for g in (self.a, self.b)]
        self.moved = left_over(keys[0], keys[1], self.nodes)
        self.counterpart = self._counterparts()
        self.origin_a, self.origin_b = _origins(self.a), _origins(self.b)

    def _counterparts(self) -> Mapping[int, int]:
        """The value of b for each value of a that has one."""
        found = {self.a.inputs[i].value.id: self.b.inputs[j].value.id for i, j in self._all_inputs()}
        for i, j in (*self.nodes, *self.moved):
            for r, s in zip(self.a.nodes[i].results, self.b.nodes[j].results, strict=False):
                if r is not None and s is not None:
                    found[r.id] = s.id
        return found

    def differences(self) -> Iterator[Difference]:
        if self.a.kind != self.b.kind:
            yield self._changed("graph", "kind", self.a.kind, self.b.kind)
        yield from self._symbols()
        yield from self._inputs()
        yield from self._nodes()
        yield from self._outputs()

    def _changed(self, where: str, what: str, before: object, after: object, line: str = "") -> Difference:
        return Difference(Change.changed, self.prefix + where, what, str(before), str(after), line)

    def _symbols(self) -> Iterator[Difference]:
        theirs = {s.source: s for s in self.b.symbols}
        ours = {s.source: s for s in self.a.symbols}
        for source in sorted(ours.keys() | theirs.keys(), key=repr):
            a, b = ours.get(source), theirs.get(source)
            where = "symbol of in" + ".dim".join(str(part) for part in source if part is not None)
            if a is None or b is None:
                yield Difference(
                    Change.added if a is None else Change.removed, self.prefix + where, "", _range(a), _range(b)
                )
            elif _range(a) != _range(b):
                yield self._changed(where, "range", _range(a), _range(b))
            elif a.name != b.name:
                yield self._changed(where, "place", a.name, b.name)

    def _all_inputs(self) -> Sequence[tuple[int, int]]:
        return *self.inputs, *self.moved_inputs

    def _inputs(self) -> Iterator[Difference]:
        pairs = self._all_inputs()
        for i in sorted(set(range(len(self.a.inputs))) - {i for i, _ in pairs}):
            yield Difference(Change.removed, f"{self.prefix}input {i}", before=_input(self.a.inputs[i]))
        for j in sorted(set(range(len(self.b.inputs))) - {j for _, j in pairs}):
            yield Difference(Change.added, f"{self.prefix}input {j}", after=_input(self.b.inputs[j]))
        for i, j in self.moved_inputs:
            before = f"input {i}"
            text = f"{_input(self.b.inputs[j])}, was {before}"
            yield Difference(Change.moved, f"{self.prefix}input {j}", "place", before, text)
        for i, j in pairs:
            a, b, where = self.a.inputs[i], self.b.inputs[j], f"input {j}"
            if a.role != b.role:
                yield self._changed(where, "role", a.role, b.role)
            if type_of(a.value) != type_of(b.value):
                yield self._changed(where, "type", type_of(a.value), type_of(b.value))

    def _nodes(self) -> Iterator[Difference]:
        paired = dict(self.nodes)
        taken = set(paired.values())
        gone = {i for i, _ in self.moved}
        came = {j: i for i, j in self.moved}
        j = 0
        for i, node in enumerate(self.a.nodes):
            if i in paired:
                yield from self._added(range(j, paired[i]), taken, came)
                j = paired[i] + 1
                yield from self._node(i, paired[i])
            elif i not in gone:
                text = node_text(node)
                yield Difference(Change.removed, f"{self.prefix}node {i}", "", text, "", self.lines[0][i])
        yield from self._added(range(j, len(self.b.nodes)), taken, came)

    def _added(self, places: range, taken: set[int], came: Mapping[int, int]) -> Iterator[Difference]:
        for j in places:
            if j in taken:
                continue
            where, text = f"{self.prefix}node {j}", node_text(self.b.nodes[j])
            if j in came:
                before = f"node {came[j]}"
                yield Difference(Change.moved, where, "place", before, f"{text}, was {before}", self.lines[1][j])
                yield from self._node(came[j], j)
            else:
                yield Difference(Change.added, where, "", "", text, self.lines[1][j])

    def _node(self, i: int, j: int) -> Iterator[Difference]:
        a, b, line = self.a.nodes[i], self.b.nodes[j], self.lines[1][j]
        where = f"node {j} ({b.op})"
        for place in range(max(len(a.args), len(b.args))):
            before, after = (n.args[place : place + 1] for n in (a, b))
            if not self._same(before, after):
                old, new = self._argument(before, self.origin_a), self._argument(after, self.origin_b)
                yield self._changed(where, f"argument {place}", old, new, line)
        for place in range(max(len(a.results), len(b.results))):
            old, new = (_result(n.results[place : place + 1]) for n in (a, b))
            if old != new:
                yield self._changed(where, f"type of result {place}", old, new, line)
        if len(a.regions) != len(b.regions):
            yield self._changed(where, "regions", len(a.regions), len(b.regions), line)
        for place, (ours, theirs) in enumerate(zip(a.regions, b.regions, strict=False)):
            inner = _Comparison(ours, theirs, f"{self.prefix}{where} region {place}: ")
            yield from inner.differences()

    def _same(self, a: object, b: object) -> bool:
        if isinstance(a, tuple) and isinstance(b, tuple):
            return len(a) == len(b) and all(map(self._same, a, b))
        if isinstance(a, Value) and isinstance(b, Value):
            return self.counterpart.get(a.id) == b.id
        return repr(a) == repr(b)  # 1, 1.0, True, -0.0 and nan are all different

    def _argument(self, given: tuple[object, ...], origins: Mapping[int, str]) -> str:
        if not given:
            return "absent"
        (arg,) = given
        whole = node_text(Node("", given, ()))  # type: ignore[arg-type]
        text = whole[whole.index("(") + 1 : whole.rindex(")")]
        return f"{text} ({origins[arg.id]})" if isinstance(arg, Value) else text

    def _outputs(self) -> Iterator[Difference]:
        for place in range(max(len(self.a.outputs), len(self.b.outputs))):
            a, b = (next(iter(g.outputs[place : place + 1]), None) for g in (self.a, self.b))
            where = f"output {place}"
            if a is None or b is None:
                change = Change.added if a is None else Change.removed
                shown = [self._output(o, origins) for o, origins in ((a, self.origin_a), (b, self.origin_b))]
                yield Difference(change, self.prefix + where, "", *shown)
                continue
            if not self._same(a.value, b.value):
                shown = [self._argument((o.value,), g) for o, g in ((a, self.origin_a), (b, self.origin_b))]
                yield self._changed(where, "value", *shown)
            for what in ("role", "target", "aliases"):
                if getattr(a, what) != getattr(b, what):
                    yield self._changed(where, what, getattr(a, what), getattr(b, what))

    def _output(self, output: Output | None, origins: Mapping[int, str]) -> str:
        return "" if output is None else f"{output.role} {self._argument((output.value,), origins)}"


def type_of(value: Value) -> str:
    """The type of a value as text."""
    return type_text(value.type)


def _origins(graph: Graph) -> dict[int, str]:
    """Where each value comes from, in a word."""
    found = {item.value.id: f"input {i}" for i, item in enumerate(graph.inputs)}
    found.update({r.id: n.op for n in graph.nodes for r in n.results if r is not None})
    return found


def _result(given: tuple[Value | None, ...]) -> str:
    if not given:
        return "absent"
    return "unused" if given[0] is None else type_of(given[0])


def _input(item: Input) -> str:
    return f"{item.role} {type_of(item.value)}"


def _range(symbol: Symbol | None) -> str:
    return "" if symbol is None else f"[{symbol.lo}, {'inf' if symbol.hi is None else symbol.hi}]"
