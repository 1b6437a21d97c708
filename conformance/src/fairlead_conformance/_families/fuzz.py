"""Graphs drawn at random from common ops: never among the cases of a level, and never the same twice.

``endless`` has one case after another; each is its seed and the number in its id, so that any can be run again alone.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch

from fairlead.errors import FairleadError
from fairlead.interpret import torch_dtype
from fairlead.ir import Builder, DType, Graph, TensorType, Value
from fairlead_conformance._case import Case, Level
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._observation import Observation
from fairlead_conformance._subject import Subject

__all__ = ["cases", "drawn", "endless", "run"]

_MOST_NODES = 12
_SHAPES = ((3, 4), (4,), (2, 3, 4), (1, 4), (3, 1), (), (0, 4), (3, 4), (3, 4))
_INPUTS = ("f32", "f32", "f32", "i64", "bool")

_FLOAT_UNARY = ("relu", "neg", "abs", "exp", "tanh", "sigmoid", "sin", "cos", "floor", "ceil", "erf", "sign")
_BINARY = ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum.default", "minimum.default")
_COMPARISONS = ("eq.Tensor", "lt.Tensor", "ge.Tensor", "ne.Tensor")
_REDUCTIONS = ("sum.dim_IntList", "mean.dim", "amax.default", "amin.default")


def cases() -> Sequence[Case]:
    """None: what is drawn at random counts for no level."""
    return ()


def endless(seed: int) -> Iterator[Case]:
    """One case after another, for as long as anybody has time; ``seed`` says which."""
    for number in itertools.count(seed * 1_000_000):
        yield Case(id=f"fuzz/base/any/s{number:09}", level=Level.L4)


def run(case: Case, subject: Subject, seen: Observation) -> None:
    number = int(case.id.rpartition("/s")[2])
    graph = drawn(number)
    generator = torch.Generator().manual_seed(number + subject.seed)
    check_graph(graph, [_filled(item.value.tensor, generator) for item in graph.inputs], subject, seen)


def drawn(number: int) -> Graph:
    """The graph of that number: types are worked out by `fairlead.ir.infer`, and a node that has none is dropped."""
    return _Drawing(random.Random(number)).graph()


def _filled(type_: TensorType, generator: torch.Generator) -> torch.Tensor:
    shape = [n for n in type_.shape if isinstance(n, int)]
    if type_.dtype is DType.f32:
        return torch.randn(shape, generator=generator)
    return torch.randint(2 if type_.dtype is DType.bool else 9, shape, generator=generator).to(torch_dtype(type_.dtype))


_Step: TypeAlias = Callable[["_Drawing"], Value]


class _Drawing:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.builder = Builder("fuzz")
        self.values: list[Value] = []

    def graph(self) -> Graph:
        chance = self.chance
        for index in range(chance.randint(1, 3)):
            dims = ", ".join(map(str, chance.choice(_SHAPES)))
            dtype = "f32" if index == 0 else chance.choice(_INPUTS)
            self.values.append(self.builder.input(f"{dtype}[{dims}]", f"x{index}"))
        given = len(self.values)
        while len(self.values) - given < chance.randint(1, _MOST_NODES):
            try:
                self.values.append(chance.choice(_STEPS)(self))
            except FairleadError:  # shapes or dtypes that do not go together
                continue
        computed = self.values[given:]
        for value in {computed[-1], *chance.sample(computed, min(2, len(computed)))}:
            self.builder.output(value)
        return self.builder.graph()

    def op(self, name: str, *args: object) -> Value:
        overload = name if "." in name else f"{name}.default"
        return self.builder.op(f"aten.{overload}", *args)  # type: ignore[arg-type]

    def floats(self, rank: int | None = None) -> Value:
        return self.pick(lambda t: t.dtype is DType.f32 and rank in (None, len(t.shape)))

    def pick(self, fits: Callable[[TensorType], bool] = lambda t: t.dtype is not DType.bool) -> Value:
        found = [value for value in self.values if fits(value.tensor)]
        return self.chance.choice(found or self.values)

    def dim(self, value: Value) -> int:
        return self.chance.randrange(max(1, len(value.tensor.shape)))


def _unary(d: _Drawing) -> Value:
    return d.op(d.chance.choice(_FLOAT_UNARY), d.floats())


def _binary(d: _Drawing) -> Value:
    return d.op(d.chance.choice(_BINARY), d.pick(), d.pick())


def _scalar(d: _Drawing) -> Value:
    return d.op(d.chance.choice(_BINARY[:3]), d.floats(), d.chance.choice((2, -1, 0.5, 0, 1)))


def _choice(d: _Drawing) -> Value:
    left = d.floats()
    return d.op("where.self", d.op(d.chance.choice(_COMPARISONS), left, d.floats()), left, d.floats())


def _reduction(d: _Drawing) -> Value:
    value = d.floats()
    dim = d.dim(value)
    of_none = value.tensor.shape[dim : dim + 1] == (0,)  # nothing has no largest element
    names = _REDUCTIONS[:2] if of_none else _REDUCTIONS
    return d.op(d.chance.choice(names), value, [dim], d.chance.random() < 0.5)


def _softmax(d: _Drawing) -> Value:
    value = d.floats()
    return d.op("_softmax", value, d.dim(value), False)


def _permutation(d: _Drawing) -> Value:
    value = d.pick()
    order = list(range(len(value.tensor.shape)))
    d.chance.shuffle(order)
    return d.op("permute", value, order)


def _slice(d: _Drawing) -> Value:
    value = d.pick()
    start = d.chance.randrange(3)
    return d.op("slice.Tensor", value, d.dim(value), start, start + d.chance.randrange(4), d.chance.choice((1, 2)))


def _joined(d: _Drawing) -> Value:
    value = d.pick()
    return d.op("cat", [value, value], d.dim(value))


def _unsqueezed(d: _Drawing) -> Value:
    value = d.pick()
    return d.op("unsqueeze", value, d.dim(value))


def _product(d: _Drawing) -> Value:
    value = d.floats(2)
    return d.op("mm", value, d.op("permute", value, [1, 0]))


def _clamped(d: _Drawing) -> Value:
    return d.op("clamp", d.floats(), -0.5, d.chance.choice((0.5, None)))


_STEPS: tuple[_Step, ...] = (
    _unary,
    _unary,
    _binary,
    _binary,
    _scalar,
    _choice,
    _reduction,
    _softmax,
    _permutation,
    _slice,
    _joined,
    _unsqueezed,
    _product,
    _clamped,
)
