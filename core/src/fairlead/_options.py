"""Options of a backend: from a mapping that a user wrote to the typed struct that the backend declares."""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import FieldInfo

from fairlead._messages import listed, nearest
from fairlead.backend import Backend, Options
from fairlead.errors import OptionValueError, UnknownOptionError


def parse(backend: Backend[Any], mapping: Mapping[str, object] | Options | None) -> Options:
    """The options of ``backend`` that ``mapping`` spells out, or a struct that the caller already made.

    Defaults fill the rest. No value is converted: ``"4"`` is not the number 4. Raises `UnknownOptionError` for a key
    that the backend does not have and `OptionValueError` for a value of the wrong type or out of range.
    """
    options_type = backend.options_type
    if isinstance(mapping, options_type):
        return mapping
    where = f"backend {backend.name!r}, {options_type.__module__}.{options_type.__qualname__}"
    if mapping is not None and not isinstance(mapping, Mapping):
        raise OptionValueError(
            f"options are a mapping from names to values, not {type(mapping).__name__}",
            where=where,
            next=_valid(options_type),
        )
    mapping = mapping or {}
    _check_keys(backend, mapping, where)
    try:
        return msgspec.convert(dict(mapping), options_type)
    except msgspec.ValidationError as error:
        raise _bad_value(options_type, mapping, str(error), where) from error


def changed(options: Options) -> dict[str, Any]:
    """The options that are not as they are by default.

    >>> from fairlead.backend import NoOptions
    >>> changed(NoOptions())
    {}
    """
    default = type(options)()
    names = options.__struct_fields__
    return {name: getattr(options, name) for name in names if getattr(options, name) != getattr(default, name)}


def spell(annotation: object) -> str:
    """A type as a user would write it.

    >>> spell(Literal["f32", "bf16"]), spell(int | None)
    ("'f32' | 'bf16'", 'int | None')
    """
    if typing.get_origin(annotation) is Literal:
        return " | ".join(repr(choice) for choice in typing.get_args(annotation))
    if typing.get_origin(annotation) is typing.Annotated:
        return spell(typing.get_args(annotation)[0])
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def _check_keys(backend: Backend[Any], mapping: Mapping[str, object], where: str) -> None:
    keys = [field.encode_name for field in _fields(backend.options_type)]
    unknown = [key for key in mapping if key not in keys]
    if not unknown:
        return
    close = nearest(str(unknown[0]), keys)
    raise UnknownOptionError(
        f"backend {backend.name!r} has no option {unknown[0]!r}",
        where=where,
        next=(f"did you mean {close!r}? " if close else "") + _valid(backend.options_type),
    )


def _bad_value(options_type: type[Options], mapping: Mapping[str, object], said: str, where: str) -> OptionValueError:
    """msgspec says ``Expected `int`, got `str` - at `$.key` ``; the user is told key, type and value."""
    said, _, path = said.partition(" - at ")
    key = match[1] if (match := re.match(r"`\$\.([^.\[`]+)", path)) else None
    if key is None or key not in mapping:
        return OptionValueError(f"the options do not fit together: {said}", where=where, next=_valid(options_type))
    expected = next(spell(field.type) for field in _fields(options_type) if field.encode_name == key)
    rule = said.partition(", got ")[0].replace("`", "")
    rule = rule.removeprefix("Expected ") if path == f"`$.{key}`" and rule.startswith("Expected ") else expected
    return OptionValueError(
        f"option {key!r} is {mapping[key]!r} ({type(mapping[key]).__name__}), expected {rule}",
        where=where,
        next=f"pass {key}: {expected}",
    )


def _valid(options_type: type[Options]) -> str:
    described = [f"{field.encode_name}: {spell(field.type)}" for field in _fields(options_type)]
    return f"valid options: {listed(described)}"


def _fields(options_type: type[Options]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(options_type)
