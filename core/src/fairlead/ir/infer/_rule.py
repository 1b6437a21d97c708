"""A rule: the types of an op's results from its arguments, and the checks that its arguments are what it takes."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, TypeAlias

from fairlead.errors import IRFormatError, VerificationError
from fairlead.ir._model import Argument, Complex, DimExpr, Token, Value
from fairlead.ir._text import type_text
from fairlead.ir._types import DType, ScalarType, TensorType, Type
from fairlead.ir.dims import Dim

Number: TypeAlias = bool | int | float | complex | str | ScalarType
"""A number as a rule sees it: a Python number, an expression over symbols, or an integer known at the call."""

Operand: TypeAlias = TensorType | Number
"""What may stand in a tensor's slot."""

Results: TypeAlias = Type | tuple[Type | None, ...] | None
"""What a rule returns: the type of the only result, one for each result, or None where only the data tell."""

Rule: TypeAlias = Callable[..., Results]
"""A function with one parameter for each of the op's, named as ATen names it, in the same order.

Its annotations say what it takes. A value is given as its type, an expression over symbols as its text (so that it is
a dimension), a dtype as a `DType`, a complex number as Python's.
"""


class BrokenRule(Exception):
    """Operands that cannot go together; the text says why, in terms of the rule."""


def require(holds: bool, why: str) -> None:
    """Raise `BrokenRule` unless the operands go together."""
    if not holds:
        raise BrokenRule(why)


def applied(op: str, rule: Rule, args: tuple[Argument, ...]) -> tuple[Type | None, ...]:
    """The types of an op's results; a `VerificationError` where the arguments do not fit the rule."""
    try:
        found = rule(*_fitting(rule, tuple(map(_seen, args))))
    except (BrokenRule, IRFormatError) as broken:  # sizes may be no expressions, or grow beyond what one may be
        why = broken.what if isinstance(broken, IRFormatError) else broken
        raise VerificationError(
            f"{op}({', '.join(map(_shown, args))}) has no result: {why}",
            where=f"the dtype and shape rule of {op}",
            next="give it operands that go together, or fix the pass or the writer that made the node",
        ) from None
    return found if isinstance(found, tuple) else (found,)


def _seen(arg: Argument) -> Any:
    """An argument as rules see it."""
    match arg:
        case Value(type=type_):
            return type_
        case DimExpr(expr=expr):
            return expr
        case Token(kind="dtype", name=name):
            return DType(name) if name in DType.__members__.values() else arg
        case Complex(re=re, im=im):
            return complex(re, im)
        case tuple():
            return tuple(map(_seen, arg))
    return arg


def _shown(arg: Argument) -> str:
    match arg:
        case Value(type=type_):
            return type_text(type_)
        case DimExpr(expr=expr):
            return f"<{expr}>"
        case Token(name=name):
            return name
        case tuple():
            return f"[{', '.join(map(_shown, arg))}]"
        case None:
            return "none"
    return str(arg)


def _fitting(rule: Rule, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, if they are what the rule takes; an integer that stands for a list is made one."""
    names, fits, texts = _parameters(rule)
    require(len(given) == len(names), f"it takes {len(names)} arguments ({', '.join(names)}), not {len(given)}")
    found = []
    for name, value, fit, text in zip(names, given, fits, texts, strict=True):
        listed = (value,) if isinstance(value, int) and not fit(value) else value
        require(fit(listed), f"{name} is not {text}")
        found.append(listed)
    return tuple(found)


@functools.cache
def _parameters(rule: Rule) -> tuple[tuple[str, ...], tuple[Callable[[Any], bool], ...], tuple[str, ...]]:
    """The names of a rule's parameters, what fits them, and the text for what does not."""
    hints = typing.get_type_hints(rule)
    names = tuple(inspect.signature(rule).parameters)
    return names, tuple(_fit(hints[n]) for n in names), tuple(_words(hints[n]) for n in names)


def _fit(hint: Any) -> Callable[[Any], bool]:
    """Whether a value is of a type: of a class, a union, None, a tuple of any length, or anything (object)."""
    if hint is object:
        return lambda value: True
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        options = [_fit(option) for option in typing.get_args(hint)]
        return lambda value: any(fit(value) for fit in options)
    if typing.get_origin(hint) is tuple:
        item = _fit(typing.get_args(hint)[0])
        return lambda value: isinstance(value, tuple) and all(map(item, value))
    if hint is str:
        return lambda value: isinstance(value, str) and not isinstance(value, DType)
    if hint is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    return lambda value: isinstance(value, hint)


_WORDS: dict[Any, str] = {
    TensorType: "a tensor",
    ScalarType: "an integer of the call",
    DType: "a dtype",
    Token: "a device, layout or memory format",
    int: "an integer",
    float: "a number",
    complex: "a complex number",
    bool: "true or false",
    str: "text or an expression",
    type(None): "none",
    object: "anything",
}


def _words(hint: Any) -> str:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(option) for option in typing.get_args(hint)))
    if typing.get_origin(hint) is tuple:
        return f"a list, each {_words(typing.get_args(hint)[0])}"
    return _WORDS[hint]


Dims: TypeAlias = tuple[Dim, ...]
"""A list of sizes, as a parameter has it."""
