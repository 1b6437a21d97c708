"""The wire form of a graph: MessagePack arrays, with types, ops and attributes in tables and values by number."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from fairlead.ir._messagepack import decode, malformed
from fairlead.ir._model import Argument, Complex, DimExpr, Graph, Input, Kind, Node, Output, Role, Symbol, Token, Value
from fairlead.ir._naming import Naming
from fairlead.ir._types import DType, ScalarType, TensorType, Type
from fairlead.ir.dims import Dim

T = TypeVar("T")

# MessagePack has numbers, strings and arrays; the other attributes are extension types.
_DIM, _TOKEN, _COMPLEX = EXTENSIONS = (1, 2, 3)
_COMPLEX_FORMAT = ">dd"
# What a result that is None is on the wire, where others have their number and type.
_NONE = -1
DEEPEST_ARGUMENT = 16
DEEPEST_REGION = 8


class _WireType(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    dtype: DType
    shape: tuple[Dim, ...] | None
    strides: tuple[Dim, ...] | None
    device: str


class WireGraph(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """A graph as MessagePack has it. A reference is the number of a value, or -1 - the number of an attribute."""

    name: str
    kind: Kind
    symbols: list[tuple[str, int, int | None, int, int | None]]
    types: list[_WireType]
    ops: list[str]
    attributes: list[Any]
    inputs: list[tuple[int, int, Role, str]]
    nodes: list[tuple[int, list[int | list[Any]], list[int], list[WireGraph]]]
    outputs: list[tuple[int, Role, int | None, int | None]]


def pack_graph(graph: Graph, canonical: bool = False) -> WireGraph:
    """The wire form, without locations, of a graph that `verify` accepts; of its canonical form if so asked."""
    return _Packer(graph, Naming(graph) if canonical else None).wire


class _Packer:
    """Fills the tables of one graph; under a naming it numbers values anew and leaves out names."""

    def __init__(self, graph: Graph, naming: Naming | None) -> None:
        self._naming = naming
        self._numbers: dict[int, int] = {}
        self._types: dict[Type, int] = {}
        self._known_types: dict[int, int] = {}
        self._ops: dict[str, int] = {}
        self._attributes: dict[tuple[type, object], int] = {}
        self._packed: list[object] = []
        name, symbols = (graph.name, graph.symbols) if naming is None else ("", naming.symbols)
        inputs = [(*self._define(i.value), i.role, "" if naming else i.name) for i in graph.inputs]
        nodes = [self._node(n) for n in graph.nodes]
        outputs = [(self._reference(o.value), o.role, o.target, o.aliases) for o in graph.outputs]
        self.wire = WireGraph(
            name=name,
            kind=graph.kind,
            symbols=[(s.name, s.lo, s.hi, *s.source) for s in symbols],
            types=[_pack_type(t) for t in self._types],
            ops=list(self._ops),
            attributes=self._packed,
            inputs=inputs,
            nodes=nodes,
            outputs=outputs,
        )

    def _node(self, node: Node) -> tuple[int, list[Any], list[int], list[WireGraph]]:
        ops, numbers = self._ops, self._numbers
        op = ops.setdefault(node.op, len(ops))
        given = self._naming.arguments(node) if self._naming else node.args
        args = [numbers[a.id] if type(a) is Value else self._reference(a) for a in given]
        results: list[int] = []
        for result in node.results:
            results += (_NONE, _NONE) if result is None else self._define(result)
        return op, args, results, [self._region(r) for r in node.regions] if node.regions else []

    def _region(self, region: Graph) -> WireGraph:
        return _Packer(region, Naming(region, self._naming) if self._naming else None).wire

    def _define(self, value: Value) -> tuple[int, int]:
        number = self._numbers[value.id] = len(self._numbers) if self._naming else value.id
        # By identity first: a graph has few types and hashing one is slow.
        known = self._known_types.get(id(value.type))
        if known is None:
            type_ = self._naming.type(value.type) if self._naming else value.type
            known = self._known_types[id(value.type)] = self._types.setdefault(type_, len(self._types))
        return number, known

    def _reference(self, arg: Argument) -> Any:
        kind = type(arg)
        if kind is Value:
            return self._numbers[arg.id]  # type: ignore[union-attr]
        if kind is tuple:
            kinds = set(map(type, arg))  # type: ignore[arg-type]
            if kinds <= _HASHABLE:
                return self._attribute((kind, arg), arg)
            if kinds & _NESTING and _holds_value(arg):
                return [self._reference(item) for item in arg]  # type: ignore[union-attr]
        elif kind in _PLAIN:
            return self._attribute((kind, arg), arg)
        elif isinstance(arg, str):  # such as a DType
            return self._attribute((str, str(arg)), str(arg))
        # By its bytes: 0.0 equals -0.0, 1 equals True, and nan not even itself.
        packed = self._pack(arg)
        return self._attribute((kind, _encode(packed)), packed)

    def _attribute(self, key: tuple[type, object], packed: object) -> int:
        number = self._attributes.get(key)
        if number is None:
            number = self._attributes[key] = -1 - len(self._packed)
            self._packed.append(packed)
        return number

    def _pack(self, arg: Argument) -> object:
        match arg:
            case float():
                return math.nan if arg != arg else arg
            case tuple():
                return [self._pack(item) for item in arg]
            case DimExpr(expr=expr):
                return msgspec.msgpack.Ext(_DIM, str(self._naming.dim(expr) if self._naming else expr).encode())
            case Token(kind=kind, name=name):
                if kind == "device" and self._naming:
                    name = self._naming.device(name)
                return msgspec.msgpack.Ext(_TOKEN, f"{kind}:{name}".encode())
            case Complex(re=re, im=im):
                parts = (math.nan if x != x else x for x in (re, im))
                return msgspec.msgpack.Ext(_COMPLEX, struct.pack(_COMPLEX_FORMAT, *parts))
        return arg


_encode = msgspec.msgpack.Encoder().encode
_PLAIN = frozenset({type(None), bool, int, str})
_HASHABLE = frozenset({int, str})
_NESTING = frozenset({tuple, Value})


def _holds_value(arg: object) -> bool:
    return type(arg) is Value or (type(arg) is tuple and any(map(_holds_value, arg)))


def unpack_graph(wire: WireGraph, where: str, depth: int = 0) -> Graph:
    """The graph of a wire form, not yet verified. Raises `IRFormatError` where it refers to what is not there."""
    if depth > DEEPEST_REGION:
        raise malformed(f"regions nested more than {DEEPEST_REGION} deep", where)
    types = [_unpack_type(t) for t in wire.types]
    # Values by their number and, below zero, attributes: one table for all references.
    things: dict[int, Any] = {-1 - i: _attribute(a, where, DEEPEST_ARGUMENT) for i, a in enumerate(wire.attributes)}

    def define(number: int, type_: int) -> Value:
        if number < 0:
            raise malformed(f"a value with the number {number}", where)
        value = things[number] = Value(number, _at(types, type_, "type", where))
        return value

    inputs = tuple([Input(define(number, type_), role, name) for number, type_, role, name in wire.inputs])
    nodes: list[Node] = []
    ops, resolve = wire.ops, things.__getitem__
    for op, args, results, regions in wire.nodes:
        try:
            resolved = tuple(map(resolve, args))  # type: ignore[arg-type]
        except (KeyError, TypeError):  # a list, or nothing that is there
            resolved = tuple([_resolve(a, things, f"{where}, node {len(nodes)}", DEEPEST_ARGUMENT) for a in args])
        if len(results) % 2:
            raise malformed("a result without a type", f"{where}, node {len(nodes)}")
        pairs = zip(results[::2], results[1::2], strict=True)
        defined = tuple([None if number == type_ == _NONE else define(number, type_) for number, type_ in pairs])
        bodies = tuple([unpack_graph(r, where, depth + 1) for r in regions]) if regions else ()
        if not 0 <= op < len(ops):
            raise malformed(f"op {op} of a table of {len(ops)}", f"{where}, node {len(nodes)}")
        nodes.append(Node(ops[op], resolved, defined, None, bodies))
    return Graph(
        name=wire.name,
        kind=wire.kind,
        inputs=inputs,
        nodes=tuple(nodes),
        outputs=tuple([_unpack_output(o, things, f"{where}, output {i}") for i, o in enumerate(wire.outputs)]),
        symbols=tuple([Symbol(name, lo, hi, (index, dim)) for name, lo, hi, index, dim in wire.symbols]),
    )


def decode_wire(data: bytes | memoryview, type_: type[T], where: str) -> T:
    """MessagePack from anyone as a wire form, with its extension types."""
    return decode(data, type_, _unpack_extension, EXTENSIONS, where)


def _unpack_extension(code: int, data: memoryview) -> object:
    raw = bytes(data)
    if code == _DIM:
        return DimExpr(raw.decode())
    if code == _TOKEN:
        return Token(*raw.decode().split(":", 1)) if b":" in raw else _reject("a token without a kind")
    if code != _COMPLEX:
        return _reject(f"an unknown extension type {code}")
    if len(raw) != struct.calcsize(_COMPLEX_FORMAT):
        return _reject("a complex number of another size")
    return Complex(*struct.unpack(_COMPLEX_FORMAT, raw))


def _reject(what: str) -> object:
    raise ValueError(what)


_ATTRIBUTES = frozenset({type(None), bool, int, float, str, DimExpr, Token, Complex})


def _attribute(packed: object, where: str, depth: int) -> Argument:
    if type(packed) is list:
        if not depth:
            raise malformed("an attribute that is nested too deeply", where)
        return tuple([_attribute(item, where, depth - 1) for item in packed])
    if type(packed) not in _ATTRIBUTES:
        raise malformed(f"an attribute that is a {type(packed).__name__}", where)
    return packed  # type: ignore[return-value]


def _resolve(reference: object, things: dict[int, Any], where: str, depth: int) -> Any:
    if type(reference) is list:
        if not depth:
            raise malformed("an argument that is nested too deeply", where)
        return tuple([_resolve(item, things, where, depth - 1) for item in reference])
    if type(reference) is not int:
        raise malformed(f"a reference that is a {type(reference).__name__}", where)
    if reference not in things:
        what = f"%{reference} is used before it is defined" if reference >= 0 else f"attribute {-1 - reference}"
        raise malformed(what if reference >= 0 else f"{what}, which is not there", where)
    return things[reference]


def _unpack_output(wire: tuple[int, Role, int | None, int | None], things: dict[int, Any], where: str) -> Output:
    reference, role, target, aliases = wire
    value = _resolve(reference, things, where, 0)
    if isinstance(value, bool) or not isinstance(value, Value | DimExpr | int | None):
        raise malformed(f"an output that is a {type(value).__name__}", where)
    return Output(value, role, target, aliases)


def _pack_type(type_: Type) -> _WireType:
    if isinstance(type_, ScalarType):
        return _WireType(type_.dtype, None, None, "")
    return _WireType(type_.dtype, type_.shape, type_.strides, type_.device)


def _unpack_type(wire: _WireType) -> Type:
    if wire.shape is None:
        return ScalarType(wire.dtype)
    return TensorType(wire.dtype, wire.shape, wire.strides, wire.device)


def _at(table: Sequence[T], index: int, what: str, where: str) -> T:
    if not 0 <= index < len(table):
        raise malformed(f"{what} {index} of a table of {len(table)}", where)
    return table[index]
