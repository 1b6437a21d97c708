"""The text form read back: a recursive-descent parser, linear in the text, safe for text from anyone."""

from __future__ import annotations

import re

from fairlead.ir._model import (
    Argument,
    Complex,
    DimExpr,
    Graph,
    Input,
    Kind,
    Location,
    Module,
    Node,
    OpUse,
    Output,
    Role,
    Symbol,
    Token,
    Value,
)
from fairlead.ir._module import check_version, finish, module
from fairlead.ir._scanner import Scanner
from fairlead.ir._types import DType, ScalarType, TensorType, Type
from fairlead.ir._verify import verify
from fairlead.ir._wire import DEEPEST_ARGUMENT, DEEPEST_REGION
from fairlead.ir.dims import Dim, normalize


def parse(text: str, where: str = "text") -> Module:
    """The module that `to_text` printed, upgraded and verified; a text without a header is a module of its graphs.

    Raises `IRFormatError` with the line and column, `IRVersionError` for a newer version, `VerificationError`.

    >>> parse('graph @main inference { in %0 user "x" : f32[2] out %0 user }').graph.inputs[0].name
    'x'
    """
    return _Parser(text, where).module()


def parse_graph(text: str, where: str = "text") -> Graph:
    """The only graph of a text, verified: the inverse of `to_text`. Raises what `parse` raises."""
    parser = _Parser(text, where)
    graph = parser.graph("graph")
    parser.end()
    return verify(graph)


def parse_type(text: str, where: str = "text") -> Type:
    """A type as `type_text` writes it; its dimensions in normal form, whatever theirs. Raises `IRFormatError`."""
    parser = _Parser(text, where)
    type_ = parser._type()
    parser.end()
    if isinstance(type_, ScalarType):
        return type_
    strides = None if type_.strides is None else tuple(map(normalize, type_.strides))
    return TensorType(type_.dtype, tuple(map(normalize, type_.shape)), strides, type_.device)


_WORDS: dict[str, Argument] = {"none": None, "true": True, "false": False}


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._scan = Scanner(text, where)
        self._where = where
        self._types: dict[str, Type] = {}

    def module(self) -> Module:
        header = self._scan.maybe("the version")
        if not header:
            graphs = [self.graph("graph")]
            while not self._scan.maybe("the end"):
                graphs.append(self.graph("graph"))
            return verify(module(*graphs, producer={}))
        version = int(header[1]), int(header[2])
        check_version("fairlead-ir", version, self._where)
        producer, ops, graphs = {}, {}, []
        while found := self._scan.maybe("a producer"):
            producer[self._scan.string(found[1])] = self._scan.string(found[2])
        while found := self._scan.maybe("an op of the table"):
            ops[found[1]] = OpUse(int(found[2]), self._scan.string(found[3]))
        while not self._scan.maybe("the end"):
            graphs.append(self.graph("graph"))
        return finish(Module(tuple(graphs), ops, version, producer), self._where)

    def end(self) -> None:
        self._scan.expect("the end")

    def graph(self, keyword: str, depth: int = 0) -> Graph:
        symbols = []
        while found := self._scan.maybe("a symbol"):
            name, lo, hi, index, dim = found.groups()
            source = int(index), None if dim is None else int(dim)
            symbols.append(Symbol(name, int(lo), None if hi == "inf" else int(hi), source))
        found = self._scan.expect(f"`{keyword} @name kind {{`")
        name = self._scan.string(found[1]) if found[1][0] == '"' else found[1]
        kind = self._scan.member(Kind, found[2])
        values: dict[int, Value] = {}
        inputs, nodes, outputs = [], [], []
        while found := self._scan.maybe("an input"):
            role, label = self._scan.member(Role, found[2]), self._scan.string(found[3])
            inputs.append(Input(self._define(values, int(found[1]), self._type()), role, label))
        while not self._scan.peek("an output") and not self._scan.peek("}"):
            nodes.append(self._node(values, depth))
        while self._scan.maybe("an output"):
            outputs.append(self._output(values))
        self._scan.expect("}")
        return Graph(name, kind, tuple(inputs), tuple(nodes), tuple(outputs), tuple(symbols))

    def _node(self, values: dict[int, Value], depth: int) -> Node:
        numbers: list[str | None] = []
        while found := self._scan.maybe("a result"):
            numbers.append(found[1])
            if not self._scan.maybe(","):
                break
        if numbers:
            self._scan.expect("=")
        op = self._scan.expect("an op")[1]
        args = self._arguments(values, ")", 0)
        types: list[Type | None] = []
        for i in range(len(numbers)):
            self._scan.expect("," if i else ":")
            types.append(None if self._scan.maybe("_") else self._type())
        results = []
        for number, type_ in zip(numbers, types, strict=True):
            if (number is None) != (type_ is None):
                self._scan.fail("a result and its type are both _ or neither")
            results.append(None if number is None or type_ is None else self._define(values, int(number), type_))
        location = self._location()
        return Node(op, args, tuple(results), location, self._regions(depth) if self._scan.maybe("{") else ())

    def _regions(self, depth: int) -> tuple[Graph, ...]:
        if depth == DEEPEST_REGION:
            self._scan.fail(f"regions nested more than {DEEPEST_REGION} deep")
        regions = []
        while not self._scan.maybe("}"):
            regions.append(self.graph("region", depth + 1))
        return tuple(regions)

    def _location(self) -> Location | None:
        found = self._scan.maybe("a location")
        if not found:
            return None
        file, line, function, path = found.groups()
        texts = ["" if t is None else self._scan.string(t) for t in (file, function, path)]
        return Location(texts[0], int(line), texts[1], texts[2])

    def _output(self, values: dict[int, Value]) -> Output:
        value = self._argument(values, 0)
        if isinstance(value, bool) or not isinstance(value, Value | DimExpr | int | None):
            self._scan.fail(f"an output that is a {type(value).__name__}")
        role = self._scan.member(Role, self._scan.expect("a role")[1])
        target, aliases = self._scan.maybe("a target"), self._scan.maybe("an alias")
        return Output(value, role, int(target[1]) if target else None, int(aliases[1]) if aliases else None)

    def _arguments(self, values: dict[int, Value], close: str, depth: int) -> tuple[Argument, ...]:
        if self._scan.maybe(close):
            return ()
        args = [self._argument(values, depth)]
        while self._scan.maybe(","):
            args.append(self._argument(values, depth))
        self._scan.expect(close)
        return tuple(args)

    def _argument(self, values: dict[int, Value], depth: int) -> Argument:
        found = self._scan.expect("an argument")
        text: str = found[found.lastgroup or 0]
        match found.lastgroup:
            case "value":
                if int(text) not in values:
                    self._scan.fail(f"%{text} is used before it is defined")
                return values[int(text)]
            case "float":
                return float(text)
            case "int":
                return int(text)
            case "word":
                return _WORDS[text]
            case "string":
                return self._scan.string(text)
            case "dim":
                return DimExpr(text)
            case "im":
                return Complex(float(found["re"]), float(text))
            case "name":
                return Token(found["kind"], self._scan.string(text) if text[0] == '"' else text)
        if depth == DEEPEST_ARGUMENT:
            self._scan.fail(f"lists nested more than {DEEPEST_ARGUMENT} deep")
        return self._arguments(values, "]", depth + 1)

    def _type(self) -> Type:
        found = self._scan.expect("a type")
        known = self._types.get(found[0])
        if known is None:
            known = self._types[found[0]] = self._new_type(found)
        return known

    def _new_type(self, found: re.Match[str]) -> Type:
        dtype = self._scan.member(DType, found[1])
        if not found[2]:
            return ScalarType(dtype)
        strides = _dims(found[5]) if found[4] else None
        return TensorType(dtype, _dims(found[3]), strides, found[6] or "cpu")

    def _define(self, values: dict[int, Value], number: int, type_: Type) -> Value:
        if number in values:
            self._scan.fail(f"%{number} is defined twice")
        value = values[number] = Value(number, type_)
        return value


def _dims(text: str) -> tuple[Dim, ...]:
    """Sizes or strides between brackets; the commas of min and max do not separate them."""
    dims, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char == "," and not depth:
            dims.append(text[start:at])
            start = at + 1
        depth += (char == "(") - (char == ")")
    if dims or text.strip():
        dims.append(text[start:])
    return tuple(_dim(d.strip()) for d in dims)


def _dim(text: str) -> Dim:
    return int(text) if re.fullmatch(r"-?\d{1,20}", text, re.ASCII) else text
