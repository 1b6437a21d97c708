"""Small graphs by hand, and their text."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import msgspec

from fairlead import ir
from fairlead.ir import (
    Argument,
    Dim,
    DimExpr,
    DType,
    Graph,
    Kind,
    Output,
    Role,
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
    """`ir.Builder` for short: types are last, symbols begin at two as captured ones do, and outputs come at the end."""

    def __init__(self, kind: Kind = Kind.inference) -> None:
        self._builder = ir.Builder("g", kind)

    def input(self, type_: TensorType, role: Role = Role.user, name: str = "") -> Value:
        for dim in type_.shape:
            if isinstance(dim, str) and dim.isidentifier():
                self._builder.symbol(dim, 2)
        return self._builder.input(type_, name, role)

    def symbol(self, name: str) -> Value:
        """An integer that is passed as such."""
        self._builder.symbol(name, 2)
        return self._builder.input("i64", name, Role.symbol)

    def __call__(self, op: str, *args: Argument, to: TensorType) -> Value:
        """Append a node with one result."""
        return self._builder.op(op, *args, to=to)

    def many(self, op: str, *args: Argument, to: tuple[TensorType | None, ...]) -> tuple[Value | None, ...]:
        """Append a node with several results, of which None are unused."""
        return self._builder.ops(op, *args, to=to)

    def graph(self, *outputs: Value | DimExpr | int | Output | None) -> Graph:
        """The graph, which keeps every rule of the IR."""
        graph = self._builder.graph()
        listed = tuple(o if isinstance(o, Output) else Output(o) for o in outputs)
        return verify(msgspec.structs.replace(graph, outputs=listed))


def nodes_of(graph: Graph) -> str:
    """The nodes and outputs of a graph as text, where its inputs are not what a test is about."""
    lines = (line.strip() for line in to_text(verify(graph)).splitlines())
    return "\n".join(line for line in lines if line.startswith(("%", "_", "out")))


def rewritten(rewrite: Callable[[Graph], Graph], graph: Graph) -> str:
    """The text of the whole graph after a rewrite; the result keeps every rule of the IR."""
    return to_text(verify(rewrite(graph)))


def text(block: str) -> str:
    return dedent(block).strip()
