"""The compact wire form of a graph: MessagePack arrays, with types and ops in tables and values by id."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairlead.errors import IRFormatError
from fairlead.ir._messagepack import check
from fairlead.ir._model import (
    Argument,
    Complex,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Location,
    Node,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Type,
    Value,
)
from fairlead.ir.dims import Dim

T = TypeVar("T")

# MessagePack has numbers, strings and arrays; the other arguments of a node are extension types.
_VALUE, _DIM, _TOKEN, _COMPLEX = EXTENSIONS = (1, 2, 3, 4)
_COMPLEX_FORMAT = ">dd"


class _WireType(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    dtype: DType
    shape: tuple[Dim, ...] | None
    strides: tuple[Dim, ...] | None = None
    device: str = ""


class _WireGraph(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: Kind
    types: list[_WireType]
    ops: list[str]
    symbols: list[tuple[str, int, int | None, int, int | None]]
    inputs: list[tuple[int, int, Role, str]]
    nodes: list[tuple[int, list[Any], list[tuple[int, int] | None]]]
    outputs: list[tuple[Any, Role, int | None, int | None]]


class _WireLocations(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    table: list[tuple[str, int, str, str]]
    of_node: list[int | None]


class _Reference(msgspec.Struct, frozen=True):
    id: int


class _Table(dict[T, int]):
    """Numbers for things, in the order in which they are first asked for."""

    def __missing__(self, thing: T) -> int:
        self[thing] = number = len(self)
        return number


def encode_graph(graph: Graph) -> bytes:
    """A graph that `verify` accepts as bytes, without locations; equal graphs give equal bytes."""
    types: _Table[Type] = _Table()
    ops: _Table[str] = _Table()
    inputs = [(i.value.id, types[i.value.type], i.role, i.name) for i in graph.inputs]
    nodes = [
        (ops[n.op], [_pack(a) for a in n.args], [None if r is None else (r.id, types[r.type]) for r in n.results])
        for n in graph.nodes
    ]
    return msgspec.msgpack.encode(
        _WireGraph(
            name=graph.name,
            kind=graph.kind,
            types=[_pack_type(t) for t in types],
            ops=list(ops),
            symbols=[(s.name, s.lo, s.hi, *s.source) for s in graph.symbols],
            inputs=inputs,
            nodes=nodes,
            outputs=[(_pack(o.value), o.role, o.target, o.aliases) for o in graph.outputs],
        )
    )


def decode_graph(data: bytes, where: str) -> Graph:
    """The graph that `encode_graph` wrote, not yet verified. Raises `IRFormatError` for anything else."""
    wire = _decode(data, _WireGraph, where)
    types = [_unpack_type(t) for t in wire.types]
    values: dict[int, Value] = {}

    def define(id_: int, type_: int) -> Value:
        values[id_] = Value(id_, _at(types, type_, "type", where))
        return values[id_]

    inputs = tuple(Input(define(id_, type_), role, name) for id_, type_, role, name in wire.inputs)
    nodes = []
    for number, (op, args, results) in enumerate(wire.nodes):
        here = f"{where}, node {number}"
        unpacked = _unpack_all(args, values, here)
        defined = tuple(None if r is None else define(*r) for r in results)
        nodes.append(Node(_at(wire.ops, op, "op", here), unpacked, defined))
    return Graph(
        name=wire.name,
        kind=wire.kind,
        inputs=inputs,
        nodes=tuple(nodes),
        outputs=tuple(_unpack_output(o, values, f"{where}, output {i}") for i, o in enumerate(wire.outputs)),
        symbols=tuple(Symbol(name, lo, hi, (index, dim)) for name, lo, hi, index, dim in wire.symbols),
    )


def encode_locations(graph: Graph) -> bytes:
    """The source lines of the graph's nodes as bytes."""
    table: _Table[Location] = _Table()
    of_node = [None if n.location is None else table[n.location] for n in graph.nodes]
    rows = [(_printable(t.file), t.line, _printable(t.function), _printable(t.module_path)) for t in table]
    return msgspec.msgpack.encode(_WireLocations(rows, of_node))


def with_locations(graph: Graph, data: bytes, where: str) -> Graph:
    """The graph with the source lines that `encode_locations` wrote."""
    wire = _decode(data, _WireLocations, where)
    if len(wire.of_node) != len(graph.nodes):
        raise malformed(f"{len(wire.of_node)} locations for {len(graph.nodes)} nodes", where)
    table = [Location(*row) for row in wire.table]
    return msgspec.structs.replace(
        graph,
        nodes=tuple(
            node if index is None else msgspec.structs.replace(node, location=_at(table, index, "location", where))
            for node, index in zip(graph.nodes, wire.of_node, strict=True)
        ),
    )


def malformed(what: str, where: str) -> IRFormatError:
    """The error for bytes that are not what a writer of this format writes."""
    return IRFormatError(
        what, where=where, next="write the file again with fairlead.ir.write; it is damaged or foreign"
    )


def _decode(data: bytes, type_: type[T], where: str) -> T:
    check(data, EXTENSIONS, where)
    try:
        return msgspec.msgpack.decode(data, type=type_, ext_hook=_unpack_extension)
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise malformed(f"not the wire form of a graph: {error}", where) from error


def _pack(arg: Argument) -> object:
    match arg:
        case tuple():
            return [_pack(item) for item in arg]
        case Value(id=id_):
            return msgspec.msgpack.Ext(_VALUE, id_.to_bytes(max(1, (id_.bit_length() + 7) // 8), "big"))
        case DimExpr(expr=expr):
            return msgspec.msgpack.Ext(_DIM, expr.encode())
        case Token(kind=kind, name=name):
            return msgspec.msgpack.Ext(_TOKEN, f"{kind}:{name}".encode())
        case Complex(re=re, im=im):
            return msgspec.msgpack.Ext(_COMPLEX, struct.pack(_COMPLEX_FORMAT, re, im))
    return arg


def _unpack_extension(code: int, data: memoryview) -> object:
    raw = bytes(data)
    if code == _VALUE:
        return _Reference(int.from_bytes(raw, "big"))
    if code == _DIM:
        return DimExpr(raw.decode())
    if code == _TOKEN:
        return Token(*raw.decode().split(":", 1)) if b":" in raw else _reject("a token without a kind")
    if len(raw) != struct.calcsize(_COMPLEX_FORMAT):
        return _reject("a complex number of another size")
    return Complex(*struct.unpack(_COMPLEX_FORMAT, raw))


def _reject(what: str) -> object:
    raise ValueError(what)


def _unpack(arg: object, values: Mapping[int, Value], where: str) -> Any:
    if isinstance(arg, list):
        return _unpack_all(arg, values, where)
    if not isinstance(arg, _Reference):
        return arg
    if arg.id not in values:
        raise malformed(f"%{arg.id} is used before it is defined", where)
    return values[arg.id]


def _unpack_all(args: Iterable[object], values: Mapping[int, Value], where: str) -> tuple[Any, ...]:
    return tuple(_unpack(a, values, where) for a in args)


def _unpack_output(wire: tuple[Any, Role, int | None, int | None], values: Mapping[int, Value], where: str) -> Output:
    value, role, target, aliases = wire
    unpacked = _unpack(value, values, where)
    if isinstance(unpacked, bool) or not isinstance(unpacked, Value | DimExpr | int | None):
        raise malformed(f"an output that is a {type(unpacked).__name__}", where)
    return Output(unpacked, role, target, aliases)


def _pack_type(type_: Type) -> _WireType:
    if isinstance(type_, ScalarType):
        return _WireType(type_.dtype, None)
    return _WireType(type_.dtype, type_.shape, type_.strides, type_.device)


def _unpack_type(wire: _WireType) -> Type:
    if wire.shape is None:
        return ScalarType(wire.dtype)
    return TensorType(wire.dtype, wire.shape, wire.strides, wire.device)


def _at(table: Sequence[T], index: int, what: str, where: str) -> T:
    if not 0 <= index < len(table):
        raise malformed(f"{what} {index} of a table of {len(table)}", where)
    return table[index]


def _printable(text: str) -> str:
    """Paths of files may hold bytes that are no UTF-8, which Python keeps as lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()
