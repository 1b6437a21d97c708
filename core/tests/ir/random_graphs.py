"""Graphs of every shape that the IR allows, drawn by a random number generator."""

from __future__ import annotations

import math
import random
from typing import Any

from fairlead.ir import (
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
    Value,
)

TEXTS = ("", "x", "fc.weight", 'a "b"', "\\", "\n\t", "é☃𝄞", "none", "[1, 2]", "%0", "a b", ">", "\x00", "in0", "}")
NAMES = ("b", "n", "s0", "inf", "none", "in0", "graph", "_", "f32")
FLOATS = (0.0, -0.0, 1.0, 0.1, -2.5, 1e16, 1e-5, 5e-324, math.inf, -math.inf, math.nan, 1.7976931348623157e308)
INTS = (0, 1, -1, 7, 300, 2**31, -(2**63), 2**63 - 1, 2**64 - 1)
OPS = ("my.add.Tensor", "out.x", "in.y.z", "my.cond", "_a.b_1.0c", "graph.symbol.op", "a.relu.default")
DEVICES = ("cpu", "cpu", "cpu", "cuda:0", "cuda:11", "xpu")
TOKENS = ("dtype", "device", "layout", "memory_format")
INPUT_ROLES = tuple(r for r in Role if r not in (Role.mutation, Role.gradient))


class Drawing:
    """Draws the parts of one graph; a region is drawn with the symbols of the graph around it."""

    def __init__(self, chance: random.Random, outer: tuple[str, ...] = (), depth: int = 0) -> None:
        self.chance = chance
        self.depth = depth
        own = [n for n in chance.sample(NAMES, chance.randrange(3)) if n not in outer]
        self.symbols = (*outer, *own)
        self.own = own
        self.numbers = iter(chance.sample(range(2**40) if chance.random() < 0.2 else range(99), 60))
        self.values: list[Value] = []

    def graph(self) -> Graph:
        chance = self.chance
        inputs = [Input(self.value(), chance.choice(INPUT_ROLES), self.text()) for _ in range(chance.randrange(4))]
        first = len(inputs)
        inputs += [Input(self.value(ScalarType(DType.i64)), Role.symbol, name) for name in self.own]
        symbols = [
            Symbol(n, chance.randrange(-3, 9), chance.choice([None, 9, 2**62]), (first + i, None))
            for i, n in enumerate(self.own)
        ]
        nodes = tuple(self.node() for _ in range(chance.randrange(5)))
        outputs = [Output(self.returned(), chance.choice([Role.user, Role.saved])) for _ in range(chance.randrange(4))]
        tensors = [i for i, v in enumerate(inputs) if isinstance(v.value.type, TensorType)]
        if tensors:
            target = chance.choice(tensors)
            aliases = chance.choice([None, target])
            outputs.append(Output(inputs[target].value, Role.mutation, target, aliases))
        kind = Kind.region if self.depth else chance.choice(list(Kind))
        return Graph(self.text(), kind, tuple(inputs), nodes, tuple(outputs), tuple(symbols))

    def node(self) -> Node:
        chance = self.chance
        args = tuple(self.argument(3) for _ in range(chance.randrange(5)))
        regions = ()
        if self.depth < 3 and chance.random() < 0.2:
            inner = [Drawing(chance, self.symbols, self.depth + 1) for _ in range(chance.randrange(1, 3))]
            regions = tuple(drawing.graph() for drawing in inner)
        results = tuple(None if chance.random() < 0.2 else self.value() for _ in range(chance.choice([0, 1, 1, 1, 3])))
        location = None
        if chance.random() < 0.5:
            location = Location(self.text(), chance.randrange(9999), self.text(), self.text())
        return Node(chance.choice(OPS), args, results, location, regions)

    def value(self, type_: TensorType | ScalarType | None = None) -> Value:
        value = Value(next(self.numbers), type_ or self.type())
        self.values.append(value)
        return value

    def type(self) -> TensorType | ScalarType:
        if self.chance.random() < 0.1:
            return ScalarType(DType.i64)
        shape = tuple(self.dim() for _ in range(self.chance.randrange(4)))
        strides = tuple(self.dim() for _ in shape) if self.chance.random() < 0.3 else None
        return TensorType(self.chance.choice(list(DType)), shape, strides, self.chance.choice(DEVICES))

    def dim(self) -> int | str:
        if not self.symbols or self.chance.random() < 0.5:
            return self.chance.choice([0, 1, 2, 16, 2**63 - 1])
        return self.expression()

    def expression(self) -> str:
        name = self.chance.choice(self.symbols)
        return self.chance.choice([name, f"2*{name} + 1", f"-{name} + 3", f"(({name} + 1)//2)", f"max(1, {name})"])

    def returned(self) -> Value | DimExpr | int | None:
        choices: list[Any] = [None, self.chance.choice([0, -4, 2**40]), *self.values]
        choices += [DimExpr(self.expression())] if self.symbols else []
        found: Value | DimExpr | int | None = self.chance.choice(choices)
        return found

    def argument(self, depth: int) -> Any:
        chance = self.chance
        match chance.randrange(12 if depth else 10):
            case 0:
                return chance.choice([None, True, False])
            case 1 | 2:
                return chance.choice(INTS)
            case 3:
                return chance.choice(FLOATS)
            case 4:
                return self.text()
            case 5:
                return DimExpr(self.expression()) if self.symbols else None
            case 6:
                return Token(chance.choice(TOKENS), chance.choice([*DEVICES, "f32", *TEXTS]))
            case 7:
                return Complex(chance.choice(FLOATS), chance.choice(FLOATS))
            case 8 | 9:
                return chance.choice(self.values) if self.values else None
        return tuple(self.argument(depth - 1) for _ in range(chance.randrange(4)))

    def text(self) -> str:
        return self.chance.choice(TEXTS)


def random_graph(seed: int) -> Graph:
    """A graph that keeps every rule, the same for the same seed."""
    return Drawing(random.Random(seed)).graph()
