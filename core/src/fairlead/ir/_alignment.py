"""Which node of one graph is which node of another: by what surrounds them first, then by what they are."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from fairlead.ir._model import Graph, Input, Node, Value

Pairs: TypeAlias = list[tuple[int, int]]

_RADIUS = 3
# difflib takes quadratic time at worst: larger gaps between nodes that surely correspond are not looked into.
_LARGEST_GAP = 4_000_000


def align_inputs(a: Graph, b: Graph) -> tuple[Pairs, Pairs]:
    """Pairs of inputs, by index: those that kept their order, and those that stand elsewhere.

    They have one role and name where they have names, else one role and type.
    """
    keys = [[_input_key(i) for i in g.inputs] for g in (a, b)]
    roles = [[i.role for i in g.inputs] for g in (a, b)]
    pairs = list(_matched(keys[0], keys[1], roles[0], roles[1]))
    return pairs, left_over(keys[0], keys[1], pairs)


def left_over(a: Sequence[Hashable], b: Sequence[Hashable], pairs: Pairs) -> Pairs:
    """Pairs of equal keys among what ``pairs`` leaves on both sides."""
    known_a, known_b = {i for i, _ in pairs}, {j for _, j in pairs}
    waiting: dict[Hashable, list[int]] = {}
    for j, key in enumerate(b):
        if j not in known_b:
            waiting.setdefault(key, []).append(j)
    found = ((i, waiting.get(key, [])) for i, key in enumerate(a) if i not in known_a)
    return [(i, places.pop(0)) for i, places in found if places]


def align_nodes(a: Graph, b: Graph) -> Pairs:
    """Pairs of nodes, by index, with one op each, in order: no pair crosses another."""
    keys = [[local_key(n) for n in g.nodes] for g in (a, b)]
    ops = [[n.op for n in g.nodes] for g in (a, b)]
    pairs: Pairs = []
    start_a = start_b = 0
    anchors = _anchors(_surroundings(a, keys[0]), _surroundings(b, keys[1]))
    for end_a, end_b in [*anchors, (len(a.nodes), len(b.nodes))]:
        here_a, here_b = slice(start_a, end_a), slice(start_b, end_b)
        inner = _matched(keys[0][here_a], keys[1][here_b], ops[0][here_a], ops[1][here_b])
        pairs += [(start_a + i, start_b + j) for i, j in inner]
        pairs.append((end_a, end_b))
        start_a, start_b = end_a + 1, end_b + 1
    return pairs[:-1]


def local_key(node: Node) -> str:
    """The node without its edges: op, attributes, types of results, and how large its regions are."""
    results = [None if r is None else r.type for r in node.results]
    return repr((node.op, [_masked(a) for a in node.args], results, [len(r.nodes) for r in node.regions]))


def _masked(arg: object) -> object:
    if isinstance(arg, Value):
        return "%"
    return tuple(map(_masked, arg)) if isinstance(arg, tuple) else arg


def _input_key(item: Input) -> Hashable:
    return (item.role, item.name) if item.name else (item.role, repr(item.value.type))


def _surroundings(graph: Graph, keys: Sequence[Hashable]) -> list[int]:
    """A number for each node that says what lies within a few edges of it."""
    producer = {r.id: i for i, n in enumerate(graph.nodes) for r in n.results if r is not None}
    given = {i.value.id: hash((i.role, i.name)) for i in graph.inputs}
    operands = [[v.id for v in n.operands()] for n in graph.nodes]
    users: list[list[int]] = [[] for _ in graph.nodes]
    for index, ids in enumerate(operands):
        for id_ in ids:
            if id_ in producer:
                users[producer[id_]].append(index)
    numbers = list(map(hash, keys))
    for _ in range(_RADIUS):
        above = [tuple(numbers[producer[i]] if i in producer else given.get(i, 0) for i in ids) for ids in operands]
        below = [tuple(sorted(numbers[u] for u in indices)) for indices in users]
        numbers = [hash(all_three) for all_three in zip(numbers, above, below, strict=True)]
    return numbers


def _anchors(a: Sequence[int], b: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs whose surroundings occur once in each graph, as many as can be without crossing (patience diff)."""
    once_a, once_b = ({key for key, count in Counter(keys).items() if count == 1} for keys in (a, b))
    place_b = {key: j for j, key in enumerate(b) if key in once_b}
    candidates = [(i, place_b[key]) for i, key in enumerate(a) if key in once_a and key in place_b]
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for position, (_, j) in enumerate(candidates):
        length = bisect.bisect_left(ends, j)
        before.append(last[length - 1] if length else None)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [position]
    chain: list[tuple[int, int]] = []
    current = last[-1] if last else None
    while current is not None:
        chain.append(candidates[current])
        current = before[current]
    return reversed(chain)


def _matched(
    a: Sequence[Hashable], b: Sequence[Hashable], coarse_a: Sequence[str], coarse_b: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Pairs of equal keys, in order; among what is left between those, pairs of equal coarse keys."""
    start, end = 0, 0
    shorter = min(len(a), len(b))
    while start < shorter and a[start] == b[start]:
        start += 1
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    stop_a, stop_b = len(a) - end, len(b) - end
    yield from zip(range(start), range(start), strict=True)
    if (stop_a - start) * (stop_b - start) <= _LARGEST_GAP:
        for tag, low_a, high_a, low_b, high_b in _opcodes(a[start:stop_a], b[start:stop_b]):
            inner = (start + low_a, start + high_a, start + low_b, start + high_b)
            if tag == "equal":
                yield from zip(range(*inner[:2]), range(*inner[2:]), strict=True)
            elif tag == "replace":
                yield from _coarsely(coarse_a, coarse_b, *inner)
    yield from zip(range(stop_a, len(a)), range(stop_b, len(b)), strict=True)


def _opcodes(a: Sequence[Hashable], b: Sequence[Hashable]) -> Sequence[tuple[str, int, int, int, int]]:
    import difflib  # only where graphs are compared: importing it takes milliseconds

    return difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()


def _coarsely(
    a: Sequence[str], b: Sequence[str], low_a: int, high_a: int, low_b: int, high_b: int
) -> Iterator[tuple[int, int]]:
    for tag, start, stop, other, _ in _opcodes(a[low_a:high_a], b[low_b:high_b]):
        if tag == "equal":
            yield from ((low_a + start + k, low_b + other + k) for k in range(stop - start))
