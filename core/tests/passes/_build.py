"""Small graphs by hand, and their text."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

from fairlead.ir import (
    Argument,
    Dim,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Value,
    to_text,
    verify,
)

F32 = Token("dtype", "f32")
STRIDED = Token("layout", "strided")
CPU = Token("device", "cpu")


def f32(*shape: Dim, strides: tuple[Dim, ...] | None = None) -> TensorType:
    return TensorType(DType.f32, shape, strides)


def typed(dtype: str, *shape: Dim) -> TensorType:
    return TensorType(DType(dtype), shape)


class Builder:
    """A graph that grows node by node; each symbol is read from the first input dimension that shows it."""

    def __init__(self, kind: Kind = Kind.inference) -> None:
        self.kind = kind
        self.inputs: list[Input] = []
        self.body: list[Node] = []
        self.symbols: dict[str, Symbol] = {}
        self._count = 0

    def input(self, type_: TensorType, role: Role = Role.user, name: str = "") -> Value:
        value = self._value(type_)
        for axis, dim in enumerate(type_.shape):
            if isinstance(dim, str) and dim.isidentifier():
                self.symbols.setdefault(dim, Symbol(dim, 2, None, (len(self.inputs), axis)))
        self.inputs.append(Input(value, role, name))
        return value

    def symbol(self, name: str) -> Value:
        """An integer that is passed as such."""
        value = Value(self._next(), ScalarType(DType.i64))
        self.symbols[name] = Symbol(name, 2, None, (len(self.inputs), None))
        self.inputs.append(Input(value, Role.symbol, name))
        return value

    def __call__(self, op: str, *args: Argument, to: TensorType) -> Value:
        """Append a node with one result."""
        (value,) = self.many(op, *args, to=(to,))
        assert value is not None
        return value

    def many(self, op: str, *args: Argument, to: tuple[TensorType | None, ...]) -> tuple[Value | None, ...]:
        """Append a node with several results, of which None are unused."""
        results = tuple(None if type_ is None else self._value(type_) for type_ in to)
        self.body.append(Node(op, args, results))
        return results

    def graph(self, *outputs: Value | DimExpr | int | Output | None) -> Graph:
        """The graph, which keeps every rule of the IR."""
        listed = tuple(o if isinstance(o, Output) else Output(o) for o in outputs)
        symbols = tuple(self.symbols.values())
        return verify(Graph("g", self.kind, tuple(self.inputs), tuple(self.body), listed, symbols))

    def _value(self, type_: TensorType) -> Value:
        return Value(self._next(), type_)

    def _next(self) -> int:
        self._count += 1
        return self._count - 1


def nodes_of(graph: Graph) -> str:
    """The nodes and outputs of a graph as text, where its inputs are not what a test is about."""
    lines = (line.strip() for line in to_text(verify(graph)).splitlines())
    return "\n".join(line for line in lines if line.startswith(("%", "_", "out")))


def rewritten(rewrite: Callable[[Graph], Graph], graph: Graph) -> str:
    """The text of the whole graph after a rewrite; the result keeps every rule of the IR."""
    return to_text(verify(rewrite(graph)))


def text(block: str) -> str:
    return dedent(block).strip()
