"""Signatures of ops: the text that a table and a file keep, and what it says."""

from __future__ import annotations

import ast
import functools
import re

import msgspec

from fairlead.errors import IRFormatError
from fairlead.ir._model import Argument, Token


class ParameterType(msgspec.Struct, frozen=True):
    """The type of a parameter or a result: an element, and whether it is a list of them, or may be left out.

    ``element`` is one of Tensor, Scalar, int, SymInt, float, bool, str, ScalarType, Layout, Device, MemoryFormat,
    Generator, Any and Graph. A list may have a ``length``, for which one element may stand that all of it equals.
    """

    element: str
    is_list: bool = False
    length: int | None = None
    optional: bool = False
    optional_items: bool = False

    def __str__(self) -> str:
        """As it stands in a signature."""
        if not self.is_list:
            return self.element + "?" * self.optional
        length = "" if self.length is None else str(self.length)
        return f"{self.element}{'?' * self.optional_items}[{length}]{'?' * self.optional}"


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of an op. ``default`` counts only where the parameter is not ``required``."""

    name: str
    type: ParameterType
    default: Argument
    required: bool
    keyword_only: bool


class Result(msgspec.Struct, frozen=True):
    """A result of an op; ``name`` is empty where the signature gives none."""

    name: str
    type: ParameterType


class Signature(msgspec.Struct, frozen=True):
    """What an op takes and gives, and what it is called."""

    op: str
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]

    @property
    def operands(self) -> tuple[Parameter, ...]:
        """The parameters that a node has an argument for; the others are regions."""
        return tuple(p for p in self.parameters if p.type.element != "Graph")

    @property
    def regions(self) -> tuple[Parameter, ...]:
        """The parameters that a node has a region for, in order."""
        return tuple(p for p in self.parameters if p.type.element == "Graph")

    @property
    def variadic(self) -> bool:
        """Whether the number of results depends on the arguments: the only result is a list."""
        return len(self.results) == 1 and self.results[0].type.is_list


_OP = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+)\((.*)\) -> (.+)", re.ASCII)
_TYPE = re.compile(r"([A-Za-z]\w*)(\?)?(?:\[(\d*)\])?(\?)?", re.ASCII)
_NAMED = re.compile(r"(\S+)(?: (\w+)(?:=(.*))?)?", re.ASCII)
_NUMBERED_DTYPES = {
    0: "u8",
    1: "i8",
    2: "i16",
    3: "i32",
    4: "i64",
    5: "f16",
    6: "f32",
    7: "f64",
    11: "bool",
    15: "bf16",
}
"""How torch's schemas write a dtype that is a default: the number of a c10::ScalarType."""


@functools.cache
def signature(text: str) -> Signature:
    """What a signature says: torch's notation for schemas, without what they say of aliases, and with dots.

    A parameter of type ``Graph`` is a region. Raises `IRFormatError` for a text that is none.

    >>> s = signature("aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    >>> s.op, [p.name for p in s.parameters], s.parameters[2].default, s.parameters[2].keyword_only
    ('aten.add.Tensor', ['self', 'other', 'alpha'], 1, True)
    >>> signature("aten.max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)").results[1].name
    'indices'
    """
    found = _OP.fullmatch(text)
    if found is None:
        raise _not_one(text, "it has not the form name.overload(parameters) -> results")
    op, inside, outside = found.groups()
    parameters = []
    keyword_only = False
    for item in _items(inside):
        if item == "*":
            keyword_only = True
        else:
            parameters.append(_parameter(item, keyword_only, text))
    returned = _items(outside[1:-1]) if outside.startswith("(") else [outside]
    return Signature(op, tuple(parameters), tuple(_result(item, text) for item in returned))


def _items(text: str) -> list[str]:
    """The items between commas, but for those inside brackets and quotes."""
    items = [""]
    depth, quote = 0, False
    for c in text:
        quote ^= c == '"'
        depth += (c == "[") - (c == "]")
        if c == "," and not depth and not quote:
            items.append("")
        else:
            items[-1] += c
    return [item.strip() for item in items if item.strip()]


def _parameter(item: str, keyword_only: bool, text: str) -> Parameter:
    found = _NAMED.fullmatch(item)
    if found is None or found[2] is None:
        raise _not_one(text, f"the parameter {item!r} is not a type and a name")
    type_ = _type(found[1], text)
    default = _default(found[3], type_, text) if found[3] is not None else None
    return Parameter(found[2], type_, default, found[3] is None, keyword_only)


def _result(item: str, text: str) -> Result:
    found = _NAMED.fullmatch(item)
    if found is None or found[3] is not None:
        raise _not_one(text, f"the result {item!r} is not a type, nor a type and a name")
    return Result(found[2] or "", _type(found[1], text))


def _type(word: str, text: str) -> ParameterType:
    found = _TYPE.fullmatch(word)
    if found is None or found[1] not in ELEMENTS:
        raise _not_one(text, f"{word!r} is not a type")
    element, first, length, last = found.groups()
    if length is None:
        return ParameterType(element, optional=bool(first))
    return ParameterType(element, True, int(length) if length else None, bool(last), bool(first))


ELEMENTS = frozenset(
    {
        "Any",
        "Device",
        "Generator",
        "Graph",
        "Layout",
        "MemoryFormat",
        "Scalar",
        "ScalarType",
        "SymInt",
        "Tensor",
        "bool",
        "float",
        "int",
        "str",
    }
)
"""The types that signatures are made of."""


def _default(word: str, type_: ParameterType, text: str) -> Argument:
    try:
        value = ast.literal_eval(word)
    except (ValueError, SyntaxError) as error:
        raise _not_one(text, f"{word!r} is not a default") from error
    if type_.element == "ScalarType" and isinstance(value, int):
        return Token("dtype", _NUMBERED_DTYPES[value])
    return tuple(value) if isinstance(value, list) else value


def _not_one(text: str, why: str) -> IRFormatError:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return IRFormatError(
        f"{shown!r} is not the signature of an op: {why}",
        where="fairlead.ir.opset",
        next="write it like aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    )
