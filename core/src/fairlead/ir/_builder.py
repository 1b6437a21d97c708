"""Write a graph by hand: inputs, ops and outputs, one call each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from fairlead.errors import IRFormatError
from fairlead.ir import dims
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
from fairlead.ir._text import type_text
from fairlead.ir._verify import verify
from fairlead.ir.dims import Dim

Attribute: TypeAlias = "Argument | DType | complex | Sequence[Attribute]"
"""What a caller may write for an argument: a list is a tuple, a `DType` its token, a complex number a `Complex`."""

TypeLike: TypeAlias = Type | str
"""A type, or its text: ``f32[b, 8]``, ``bf16[2, 3] strides[1, 2] @cuda:0``, ``i64`` for an integer."""


class Builder:
    """A graph that grows call by call, and that `graph` hands out once it keeps every rule of the IR.

    ``kind`` is ``Kind.region`` for a body of control flow. A builder may go on after `graph`; nothing is shared.

    >>> b = Builder("forward")
    >>> x = b.input("f32[b, 8]", name="x")
    >>> w = b.input("f32[16, 8]", name="fc.weight", role=Role.parameter)
    >>> y = b.op("aten.linear.default", x, w, None, to="f32[b, 16]")
    >>> b.output(b.op("aten.relu.default", y, to=y.type))
    >>> from fairlead.ir import to_text
    >>> print(to_text(b.graph()))
    symbol b in [1, inf] from in0.dim0
    graph @forward inference {
      in %0 user "x" : f32[b, 8]
      in %1 parameter "fc.weight" : f32[16, 8]
      %2 = aten.linear.default(%0, %1, none) : f32[b, 16]
      %3 = aten.relu.default(%2) : f32[b, 16]
      out %3 user
    }
    """

    def __init__(self, name: str = "main", kind: Kind = Kind.inference) -> None:
        self.name = name
        self.kind = kind
        self._inputs: list[Input] = []
        self._nodes: list[Node] = []
        self._outputs: list[Output] = []
        self._symbols: dict[str, Symbol] = {}
        self._ranges: dict[str, tuple[int, int | None]] = {}
        self._next = 0

    def symbol(self, name: str, lo: int = 1, hi: int | None = None) -> DimExpr:
        """The range of a symbol, before or after an input shows it; without a call it is 1 to anything.

        Returned as an argument for `op`: ``b.op("aten.view.default", x, (b.symbol("n"), 2), ...)``.
        """
        self._ranges[name] = lo, hi
        return DimExpr(name)

    def input(self, type_: TypeLike, name: str = "", role: Role = Role.user) -> Value:
        """One more input. Symbols that are its dimensions are read from it, unless an earlier input has them.

        An integer with the role ``symbol`` is the value of the symbol of its name.
        """
        value = self._value(type_)
        index = len(self._inputs)
        if role is Role.symbol:
            self._symbols.setdefault(name, Symbol(name, 1, None, (index, None)))
        for axis, dim in enumerate(value.type.shape if isinstance(value.type, TensorType) else ()):
            if isinstance(dim, str) and dim.isidentifier():
                self._symbols.setdefault(dim, Symbol(dim, 1, None, (index, axis)))
        self._inputs.append(Input(value, role, name))
        return value

    def op(
        self,
        op: str,
        *args: Attribute,
        to: TypeLike,
        regions: Sequence[Graph] = (),
        location: Location | None = None,
    ) -> Value:
        """One more node with one result, of the type ``to``.

        ``args`` has one entry for each parameter of the op's signature, defaults written out.
        """
        (value,) = self.ops(op, *args, to=(to,), regions=regions, location=location)
        assert value is not None
        return value

    def ops(
        self,
        op: str,
        *args: Attribute,
        to: Sequence[TypeLike | None],
        regions: Sequence[Graph] = (),
        location: Location | None = None,
    ) -> tuple[Value | None, ...]:
        """One more node with a result for each type in ``to``; None is a result that nobody uses.

        >>> b = Builder()
        >>> first, _ = b.ops("aten.unbind.int", b.input("f32[2, 3]"), 0, to=("f32[3]", None))
        >>> first.type
        TensorType(dtype=<DType.f32: 'f32'>, shape=(3,), strides=None, device='cpu')
        """
        results = tuple(None if type_ is None else self._value(type_) for type_ in to)
        self._nodes.append(Node(op, tuple(map(_argument, args)), results, location, tuple(regions)))
        return results

    def output(
        self,
        value: Value | DimExpr | int | None,
        role: Role = Role.user,
        target: int | Value | None = None,
        aliases: int | Value | None = None,
    ) -> None:
        """One more output. ``target`` (of a mutation) and ``aliases`` are inputs: their values or their positions."""
        self._outputs.append(Output(value, role, self._position(target), self._position(aliases)))

    def graph(self) -> Graph:
        """The graph so far. Raises `VerificationError` where it breaks a rule."""
        symbols = (
            msgspec.structs.replace(s, lo=lo, hi=hi)
            for s in self._symbols.values()
            for lo, hi in (self._ranges.get(s.name, (s.lo, s.hi)),)
        )
        return verify(
            Graph(self.name, self.kind, tuple(self._inputs), tuple(self._nodes), tuple(self._outputs), tuple(symbols))
        )

    def _value(self, type_: TypeLike) -> Value:
        self._next += 1
        return Value(self._next - 1, parse_type(type_) if isinstance(type_, str) else type_)

    def _position(self, where: int | Value | None) -> int | None:
        if not isinstance(where, Value):
            return where
        found = [i for i, item in enumerate(self._inputs) if item.value == where]
        if not found:
            raise IRFormatError(
                f"%{where.id} ({type_text(where.type)}) is no input",
                where=f"an output of graph @{self.name}",
                next="name the input that the output overwrites, or whose memory it shares",
            )
        return found[0]


_TYPE = re.compile(
    r"(?P<dtype>\w+)(\[(?P<shape>[^\]]*)\])?( strides\[(?P<strides>[^\]]*)\])?( @(?P<device>[\w:]+))?", re.ASCII
)


def parse_type(text: str) -> Type:
    """The type that `type_text` writes so; dimensions need not be in normal form. Raises `IRFormatError`."""
    found = _TYPE.fullmatch(text.strip())
    known = set(map(str, DType))
    if (
        found is None
        or found["dtype"] not in known
        or (found["shape"] is None and (found["strides"] or found["device"]))
    ):
        raise IRFormatError(
            f"{text!r} is not a type",
            where="fairlead.ir.Builder",
            next="write a dtype of the IR and a shape, such as f32[b, 8], or the dtype alone for a number",
        )
    dtype = DType(found["dtype"])
    if found["shape"] is None:
        return ScalarType(dtype)
    strides = None if found["strides"] is None else _dims(found["strides"])
    return TensorType(dtype, _dims(found["shape"]), strides, found["device"] or "cpu")


def _dims(text: str) -> tuple[Dim, ...]:
    """Sizes, divided by the commas that stand in no parentheses."""
    return tuple(dims.normalize(part.strip()) for part in re.split(r",(?![^(]*\))", text) if part.strip())


def _argument(given: Attribute) -> Argument:
    match given:
        case DType():
            return Token("dtype", given)
        case complex():
            return Complex(given.real, given.imag)
        case list() | tuple():
            return tuple(map(_argument, given))
    return given  # type: ignore[return-value]  # the other kinds of Attribute are arguments; verify says which are not
