"""Source lines apart from their graph, because they hold paths of a machine and can be left out of a file."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairlead.ir._messagepack import decode, malformed
from fairlead.ir._model import Graph, Location, Module, Node


class _WireLocations(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    table: list[tuple[str, int, str, str]]
    of_node: list[int]


def encode_locations(module: Module) -> bytes:
    """The source lines of all nodes, those of a region right after the node that it belongs to; b"" if there are none.

    A table of lines, and for each node its row, or -1.
    """
    rows: dict[tuple[str, int, str, str], int] = {}
    of_node = []
    for node in (n for g in module.graphs for n in g.walk()):
        at = node.location
        row = (
            None if at is None else (_printable(at.file), at.line, _printable(at.function), _printable(at.module_path))
        )
        of_node.append(-1 if row is None else rows.setdefault(row, len(rows)))
    return msgspec.msgpack.encode(_WireLocations(list(rows), of_node)) if rows else b""


def with_locations(module: Module, data: bytes | memoryview, where: str) -> Module:
    """The module with the source lines that `encode_locations` wrote."""
    wire = decode(data, _WireLocations, None, (), where)
    table = [Location(*row) for row in wire.table]
    count = sum(1 for g in module.graphs for _ in g.walk())
    if len(wire.of_node) != count:
        raise malformed(f"{len(wire.of_node)} locations for {count} nodes", where)
    if not all(-1 <= index < len(table) for index in wire.of_node):
        raise malformed(f"a location that is not in the table of {len(table)}", where)
    locations = (table[index] if index >= 0 else None for index in wire.of_node)
    graphs = tuple([_located(g, locations) for g in module.graphs])
    return msgspec.structs.replace(module, graphs=graphs)


def _located(graph: Graph, locations: Iterator[Location | None]) -> Graph:
    nodes = []
    for node in graph.nodes:
        location = next(locations)
        regions = tuple([_located(r, locations) for r in node.regions]) if node.regions else ()
        nodes.append(Node(node.op, node.args, node.results, location, regions))
    return Graph(graph.name, graph.kind, graph.inputs, tuple(nodes), graph.outputs, graph.symbols)


def _printable(text: str) -> str:
    """Paths of files may hold bytes that are no UTF-8, which Python keeps as lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
