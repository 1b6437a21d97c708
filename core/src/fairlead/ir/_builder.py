"""Write a graph by hand: inputs, ops and outputs, one call each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from fairlead.errors import IRFormatError
from fairlead.ir import dims
from fairlead.ir._model import (
    Argument,
    Complex,
    DimExpr,
    Graph,
    Input,
    Kind,
    Location,
    Node,
    Output,
    Role,
    Symbol,
    Token,
    Value,
)
from fairlead.ir._parse import parse_type
from fairlead.ir._text import node_text, type_text
from fairlead.ir._types import DType, TensorType, Type
from fairlead.ir._verify import verify
from fairlead.ir.opset import Parameter, signature, spec

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
    >>> b.output(b.op("aten.relu.default", b.op("aten.linear.default", x, w)))
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
        to: TypeLike | None = None,
        regions: Sequence[Graph] = (),
        location: Location | None = None,
        **named: Attribute,
    ) -> Value:
        """One more node with one result: its first argument is the op, the others are the op's.

        They may be given by position or by the name in the op's signature, and those that have a default may be left
        out. Text for a size is an expression. A custom op takes all of its arguments by position. ``to`` is the type of
        the result; without it `fairlead.ir.infer` works it out, with row-major strides. Raises `IRFormatError` where
        the arguments do not fit, or the type is not known.

        >>> b = Builder()
        >>> x = b.input("f32[b, 3]")
        >>> b.op("aten.sum.dim_IntList", x, [1], keepdim=True).type.shape
        ('b', 1)
        """
        types = (to,) if to is not None else None
        (value,) = self.ops(op, *args, to=types, regions=regions, location=location, **named)
        if value is None:
            raise _unknown_type(self._nodes.pop())
        return value

    def ops(
        self,
        op: str,
        *args: Attribute,
        to: Sequence[TypeLike | None] | None = None,
        regions: Sequence[Graph] = (),
        location: Location | None = None,
        **named: Attribute,
    ) -> tuple[Value | None, ...]:
        """One more node, as `op`, with a result for each type in ``to``; None is a result that nobody uses.

        >>> b = Builder()
        >>> first, _ = b.ops("aten.unbind.int", b.input("f32[2, 3]"), to=("f32[3]", None))
        >>> values, indices = b.ops("aten.topk.default", first, 2)
        >>> indices.type
        TensorType(dtype=<DType.i64: 'i64'>, shape=(2,), strides=None, device='cpu')
        """
        filled = _filled(op, args, named)
        types: Sequence[TypeLike | None] = self._inferred(op, filled) if to is None else to
        results = tuple(None if type_ is None else self._value(type_) for type_ in types)
        self._nodes.append(Node(op, filled, results, location, tuple(regions)))
        return results

    def _inferred(self, op: str, args: tuple[Argument, ...]) -> tuple[Type | None, ...]:
        from fairlead.ir.infer import infer  # its rules are many, and a graph is mostly read, not written

        types = infer(op, args, self._with_ranges())
        if not types:
            raise _unknown_type(Node(op, args, ()))
        return types

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
        inputs, nodes, outputs = tuple(self._inputs), tuple(self._nodes), tuple(self._outputs)
        return verify(Graph(self.name, self.kind, inputs, nodes, outputs, tuple(self._with_ranges())))

    def _with_ranges(self) -> list[Symbol]:
        ranges = ((s, self._ranges.get(s.name, (s.lo, s.hi))) for s in self._symbols.values())
        return [msgspec.structs.replace(s, lo=lo, hi=hi) for s, (lo, hi) in ranges]

    def _value(self, type_: TypeLike) -> Value:
        self._next += 1
        return Value(self._next - 1, parse_type(type_, "fairlead.ir.Builder") if isinstance(type_, str) else type_)

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


def _unknown_type(node: Node) -> IRFormatError:
    return IRFormatError(
        f"the type of the result of {node.op} is not known",
        where=f"fairlead.ir.Builder: `{node_text(node)}`",
        next="say it with to=, such as to='f32[b, 8]'",
    )


def _filled(op: str, args: Sequence[Attribute], named: Mapping[str, Attribute]) -> tuple[Argument, ...]:
    """One argument for each parameter of the op; those of a custom op are all there, in order."""
    found = spec(op)
    if found is None and not named:
        return tuple(map(_argument, args))
    parameters = signature(found.signature).operands if found else ()
    given = {**dict(zip((p.name for p in parameters), args, strict=False)), **named}
    unknown = named.keys() - {p.name for p in parameters}
    twice = named.keys() & {p.name for p in parameters[: len(args)]}
    missing = [p.name for p in parameters if p.required and p.name not in given]
    if len(args) > len(parameters) or unknown or twice or missing:
        flaw = f"{', '.join(sorted(unknown or twice) or missing) or 'the last arguments'}"
        problem = "unknown" if unknown else "given twice" if twice else "missing" if missing else "too many"
        raise IRFormatError(
            f"{op}: {flaw} {problem}",
            where="fairlead.ir.Builder",
            next=f"call it as {found.signature if found else 'its registration says, all arguments by position'}",
        )
    return tuple(_of_parameter(given[p.name], p) if p.name in given else p.default for p in parameters)


def _of_parameter(given: Attribute, parameter: Parameter) -> Argument:
    """Text in the place of a size is an expression."""
    if parameter.type.element not in ("SymInt", "int"):
        return _argument(given)
    if isinstance(given, str) and not isinstance(given, DType):
        dim = dims.normalize(given)
        return DimExpr(dim) if isinstance(dim, str) else dim
    if isinstance(given, list | tuple):
        return tuple(_of_parameter(item, parameter) for item in given)
    return _argument(given)


def _argument(given: Attribute) -> Argument:
    match given:
        case DType():
            return Token("dtype", given)
        case complex():
            return Complex(given.real, given.imag)
        case list() | tuple():
            return tuple(map(_argument, given))
    return given  # type: ignore[return-value]  # the other kinds of Attribute are arguments; verify says which are not
