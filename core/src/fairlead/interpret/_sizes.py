"""Symbolic sizes as nodes of an FX graph."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from fairlead.ir import Dim, Graph

_OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class Sizes:
    """Writes each size once, where it is first used. ``values`` are the FX nodes of the graph's values, by id."""

    def __init__(self, fx: torch.fx.Graph, graph: Graph, values: Mapping[int, torch.fx.Node]) -> None:
        self._fx = fx
        self._graph = graph
        self._values = values
        self._symbols = {s.name: s for s in graph.symbols}
        self._known: dict[Dim, Any] = {}

    def give(self, name: str, node: torch.fx.Node) -> None:
        """Take the value of a symbol from a node."""
        self._known[name] = node

    def __call__(self, dim: Dim) -> Any:
        """The size as an argument of an FX node."""
        if isinstance(dim, int):
            return dim
        if dim not in self._known:
            self._known[dim] = self._expression(ast.parse(dim, mode="eval").body)
        return self._known[dim]

    def _expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                return self._symbol(name)
            case ast.UnaryOp(operand=operand):
                return self._fx.call_function(operator.neg, (self._expression(operand),))
            case ast.BinOp(left=left, op=op, right=right):
                function = _OPERATORS[type(op)]
                return self._fx.call_function(function, (self._expression(left), self._expression(right)))
            case ast.Call(func=ast.Name(id=name), args=args):
                pick = torch.sym_min if name == "min" else torch.sym_max
                parts = [self._expression(a) for a in args]
                return functools.reduce(lambda a, b: self._fx.call_function(pick, (a, b)), parts)
        raise AssertionError(ast.dump(node))

    def _symbol(self, name: str) -> Any:
        if name not in self._known:
            index, axis = self._symbols[name].source
            source = self._values[self._graph.inputs[index].value.id]
            if axis is not None:
                source = self._fx.call_function(torch.ops.aten.sym_size.int, (source, axis))
            self._known[name] = source
        return self._known[name]
