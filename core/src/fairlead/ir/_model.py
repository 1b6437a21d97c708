"""The data model of the IR: frozen structs that know neither torch nor NumPy.

Frozen structs cannot form cycles, so the garbage collector is spared them (``gc=False``): a third of the time of
reading a large file went there.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from fairlead.ir._types import TensorType, Type
from fairlead.ir.dims import free_symbols

IR_VERSION = (1, 0)
"""Major and minor version of the data model. Every later minor of a major reads it."""


class Value(msgspec.Struct, frozen=True, gc=False, tag="value", tag_field="_"):
    """What an input or a node defines, exactly once. ``id`` is unique in its graph."""

    id: int
    type: Type

    @property
    def tensor(self) -> TensorType:
        """The tensor type; a TypeError for a scalar value."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"%{self.id} is a scalar, not a tensor")
        return self.type


class DimExpr(msgspec.Struct, frozen=True, gc=False, tag="dim", tag_field="_"):
    """An attribute that is an integer expression over the graph's symbols."""

    expr: str


class Token(msgspec.Struct, frozen=True, gc=False, tag="token", tag_field="_"):
    """An attribute that names a thing: ``kind`` is dtype, device, layout or memory_format."""

    kind: str
    name: str


class Complex(msgspec.Struct, frozen=True, gc=False, tag="complex", tag_field="_"):
    """A complex number as an attribute."""

    re: float
    im: float


Argument: TypeAlias = "Value | DimExpr | Token | Complex | bool | int | float | str | tuple[Argument, ...] | None"
"""What stands in one slot of a node: a value, an attribute, or a tuple of either. Tensor slots may hold a number."""


class Location(msgspec.Struct, frozen=True, gc=False):
    """The line of the user's program that a node stems from."""

    file: str
    line: int
    function: str = ""
    module_path: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


class Node(msgspec.Struct, frozen=True, gc=False):
    """One operation. ``args`` has one entry for each parameter of the op's signature, in its order, defaults filled in.

    A result that nobody uses may be None, and always is where the op returns nothing in that place. ``regions`` are the
    bodies of control flow: closed graphs, whose inputs the op gives them.
    """

    op: str
    args: tuple[Argument, ...]
    results: tuple[Value | None, ...]
    location: Location | None = None
    regions: tuple[Graph, ...] = ()

    def operands(self) -> Iterator[Value]:
        """Every value among the arguments, in order, with repetitions."""
        return iter(_values(self.args))

    @property
    def result(self) -> Value:
        """The only result of a node that has one; a ValueError otherwise."""
        (value,) = self.results
        if value is None:
            raise ValueError(f"{self.op} has no result here")
        return value


class Role(enum.StrEnum):
    """What an input or an output is to the program."""

    parameter = "parameter"
    buffer = "buffer"
    constant = "constant"
    user = "user"
    tangent = "tangent"
    saved = "saved"
    symbol = "symbol"
    rng = "rng"
    mutation = "mutation"
    gradient = "gradient"
    intermediate = "intermediate"


class Input(msgspec.Struct, frozen=True, gc=False):
    """A graph input; ``name`` is the fully qualified name of a parameter or buffer."""

    value: Value
    role: Role = Role.user
    name: str = ""


class Output(msgspec.Struct, frozen=True, gc=False):
    """A graph output: a value, an integer expression (a size that is returned), or None.

    ``target`` is the index of the input that a mutation overwrites; ``aliases`` that of the input whose memory a user
    output shares.
    """

    value: Value | DimExpr | int | None
    role: Role = Role.user
    target: int | None = None
    aliases: int | None = None


class Symbol(msgspec.Struct, frozen=True, gc=False):
    """An integer that is known only at the call: its range (``hi`` None is unbounded) and the input it is read from.

    ``source`` is ``(input, dimension)``, or ``(input, None)`` where the input itself is the integer.
    """

    name: str
    lo: int
    hi: int | None
    source: tuple[int, int | None]

    def read(self, inputs: Sequence[Any]) -> int:
        """What it is in a call with these inputs: tensors, of torch or others, and integers.

        >>> Symbol("s0", 1, None, (0, None)).read([6])
        6
        """
        index, axis = self.source
        value: int = inputs[index] if axis is None else inputs[index].shape[axis]
        return value


class Kind(enum.StrEnum):
    """Which half of the program a graph is, or that it is a body of control flow."""

    inference = "inference"
    forward = "forward"
    backward = "backward"
    region = "region"


class Graph(msgspec.Struct, frozen=True, gc=False):
    """A pure function of its inputs: nodes in an order in which each value is defined before it is used."""

    name: str
    kind: Kind
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    symbols: tuple[Symbol, ...] = ()

    def walk(self) -> Iterator[Node]:
        """The nodes in order, those of a region right after the node that it belongs to."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()

    def users(self) -> Mapping[int, int]:
        """How often each value is used, by nodes and outputs, by its id."""
        count: dict[int, int] = {}
        for value in (*(v for n in self.nodes for v in n.operands()), *self.output_values()):
            count[value.id] = count.get(value.id, 0) + 1
        return count

    def output_values(self) -> Iterator[Value]:
        """The outputs that are values, in order."""
        return (o.value for o in self.outputs if isinstance(o.value, Value))

    def producers(self) -> Mapping[int, Node]:
        """The node that defines each value, by its id; inputs are not in it."""
        return {r.id: n for n in self.nodes for r in n.results if r is not None}

    def next_id(self) -> int:
        """An id that no value of the graph has."""
        ids = [i.value.id for i in self.inputs]
        ids += [r.id for n in self.nodes for r in n.results if r is not None]
        return max(ids, default=-1) + 1


class OpUse(msgspec.Struct, frozen=True, gc=False):
    """Which version of an op a module uses, and its frozen signature text, for readers that do not know the op."""

    version: int
    signature: str = ""


class Module(msgspec.Struct, frozen=True):
    """Graphs that belong together, such as a forward and its backward, and what they were written with.

    ``ops`` has an entry for each op that occurs, in regions too, sorted by name; `fairlead.ir.module` fills it in.
    ``producer`` names the programs that made the module and their versions; it is no part of its meaning.
    """

    graphs: tuple[Graph, ...]
    ops: dict[str, OpUse]
    ir_version: tuple[int, int] = IR_VERSION
    producer: dict[str, str] = {}

    @property
    def graph(self) -> Graph:
        """The only graph of a module that has one; a ValueError otherwise."""
        (graph,) = self.graphs
        return graph


def _values(args: tuple[Argument, ...]) -> list[Value]:
    found: list[Value] = []
    for arg in args:
        if isinstance(arg, Value):
            found.append(arg)
        elif isinstance(arg, tuple):
            found += _values(arg)
    return found


def symbols_in(*items: object) -> frozenset[str]:
    """The names of the symbols in values, types, arguments and nodes; of a graph, those that it does not declare."""
    found: set[str] = set()
    _add_symbols(found, items)
    return frozenset(found)


def _add_symbols(found: set[str], items: Iterable[object]) -> None:
    for item in items:
        match item:
            case Value(type=TensorType(shape=shape, strides=strides)) | TensorType(shape=shape, strides=strides):
                for dim in shape if strides is None else (*shape, *strides):
                    if isinstance(dim, str):
                        found |= free_symbols(dim)
            case DimExpr(expr=expr):
                found |= free_symbols(expr)
            case Node(args=args, results=results, regions=regions):
                _add_symbols(found, (*args, *results, *regions))
            case Graph(inputs=inputs, nodes=nodes, outputs=outputs, symbols=symbols):
                inner = symbols_in(*(i.value for i in inputs), *nodes, *(o.value for o in outputs))
                found |= inner.difference(s.name for s in symbols)
            case tuple():
                _add_symbols(found, item)
