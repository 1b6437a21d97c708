"""Modules: the table of ops that belongs to some graphs, and their canonical MessagePack."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlead.errors import IRVersionError
from fairlead.ir._messagepack import malformed
from fairlead.ir._model import IR_VERSION, Argument, Complex, DimExpr, Graph, Module, Node, OpUse, Token, Value
from fairlead.ir._upgrade import CHANGES, current_version, downgrade, upgrade
from fairlead.ir._verify import verify
from fairlead.ir._wire import WireGraph, decode_wire, pack_graph, unpack_graph
from fairlead.ir.opset import spec

FORMAT = "fairlead-ir"


class _Header(msgspec.Struct, array_like=True, frozen=True):
    """What every version of the form starts with."""

    format: str
    ir_version: tuple[int, int]


class _WireModule(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    format: str
    ir_version: tuple[int, int]
    ops: list[tuple[str, int, str]]
    producer: list[tuple[str, str]]
    graphs: list[WireGraph]


def module(*graphs: Graph, ops: Mapping[str, OpUse] | None = None, producer: Mapping[str, str] | None = None) -> Module:
    """The module of some graphs: its table has each op that they use, with version and frozen signature.

    ``ops`` says so for ops that the opset does not have; of an op that is in neither, the table says what kinds of
    arguments it was seen with. ``producer`` is what is installed of Fairlead and torch, unless given.

    >>> from fairlead.ir import DType, Input, Kind, Output, TensorType
    >>> x, y = (Value(i, TensorType(DType.f32, (2,))) for i in range(2))
    >>> nodes = (Node("my.op.default", (x, 1.5), (y,)),)
    >>> module(Graph("main", Kind.inference, (Input(x),), nodes, (Output(y),))).ops
    {'my.op.default': OpUse(version=1, signature='my.op.default(Tensor, float) -> Tensor')}
    """
    seen = {n.op: n for g in reversed(graphs) for n in reversed(list(g.walk()))}
    known = ops or {}
    table = {
        op: _known(op) or known.get(op) or OpUse(current_version(op), _shown(node)) for op, node in sorted(seen.items())
    }
    return Module(graphs, table, IR_VERSION, dict(_installed() if producer is None else producer))


def to_bytes(content: Graph | Module) -> bytes:
    """A verified graph or module in MessagePack, without source lines; equal content gives equal bytes.

    >>> from fairlead.ir import Kind
    >>> graph = Graph("empty", Kind.inference, (), (), ())
    >>> from_bytes(to_bytes(module(graph))).graph == graph
    True
    """
    content = content if isinstance(content, Module) else module(content, producer={})
    return msgspec.msgpack.encode(
        _WireModule(
            format=FORMAT,
            ir_version=content.ir_version,
            ops=[(op, use.version, use.signature) for op, use in content.ops.items()],
            producer=list(content.producer.items()),
            graphs=[pack_graph(g) for g in content.graphs],
        )
    )


def from_bytes(data: bytes, where: str = "bytes") -> Module:
    """The module that `to_bytes` wrote, verified. Raises `IRFormatError` or `VerificationError` for anything else."""
    header = decode_wire(data, _Header, where)
    check_version(header.format, header.ir_version, where)
    wire = decode_wire(data, _WireModule, where)
    ops = {op: OpUse(version, signature) for op, version, signature in wire.ops}
    graphs = tuple([unpack_graph(g, where) for g in wire.graphs])
    return finish(Module(graphs, ops, wire.ir_version, dict(wire.producer)), where)


def finish(module: Module, where: str) -> Module:
    """A module as it was read, upgraded to the current versions and verified."""
    if not any(op in CHANGES or use.version != 1 for op, use in module.ops.items()):
        return verify(module)
    return verify(upgrade(module, where, {op: use for op in module.ops if (use := _known(op))}))


def down_to(module: Module, opset: int) -> Module:
    """The module as an older opset says it; an `ArgumentError` names what it cannot say."""

    def since(op: str) -> int:
        found = spec(op)
        return found.since if found else 1

    return downgrade(module, opset, since)


def _known(op: str) -> OpUse | None:
    found = spec(op)
    return OpUse(found.version, found.signature) if found else None


def check_version(format_: str, version: tuple[int, int], where: str) -> None:
    """Raise `IRVersionError` for a newer version of the format than this one, `IRFormatError` for no version of it."""
    if format_ != FORMAT:
        raise malformed(f"its format is {format_[:80]!r}, not {FORMAT!r}", where)
    if version > IR_VERSION:
        raise IRVersionError(
            "it has IR version {}.{}; this Fairlead reads up to {}.{}".format(*version, *IR_VERSION),
            where=where,
            next="pip install --upgrade fairlead",
        )
    if version[0] < IR_VERSION[0] or version[1] < 0:
        raise malformed("it has IR version {}.{}, which was never released".format(*version), where)


def _installed() -> dict[str, str]:
    """From the metadata of what is installed, so that nothing is imported and the bytes do not depend on what is."""
    from importlib import metadata  # takes longer than the rest of the IR

    return {name: d.version for name in ("fairlead", "torch") for d in metadata.distributions(name=name)}


def _shown(node: Node) -> str:
    results = ", ".join(map(_kind, node.results))
    return f"{node.op}({', '.join(map(_kind, node.args))}) -> {results if len(node.results) == 1 else f'({results})'}"


def _kind(arg: Argument) -> str:
    match arg:
        case None:
            return "none"
        case Value():
            return "Tensor" if hasattr(arg.type, "shape") else "SymInt"
        case DimExpr():
            return "SymInt"
        case Token(kind=kind):
            return kind
        case Complex():
            return "complex"
        case tuple():
            kinds = {_kind(item) for item in arg}
            return f"{kinds.pop() if len(kinds) == 1 else ''}[]"
    return type(arg).__name__
