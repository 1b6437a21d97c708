"""Options of a backend and sizes of symbols as words of a command line: NAME=VALUE, read and written."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from fairlead._options import changed
from fairlead.backend import Options
from fairlead.errors import ArgumentError


def given_options(pairs: Sequence[str]) -> dict[str, object]:
    """Options of a backend: values are JSON where they read as such, and text otherwise.

    >>> given_options(["threads=4", "precision=bf16", "cache=true"])
    {'threads': 4, 'precision': 'bf16', 'cache': True}
    """
    return {name: _value(text) for name, text in _split(pairs, "--option", "threads=4")}


def given_sizes(pairs: Sequence[str]) -> dict[str, int]:
    """Sizes of symbols.

    >>> given_sizes(["s0=4", "s1=12"])
    {'s0': 4, 's1': 12}
    """
    found: dict[str, int] = {}
    for name, text in _split(pairs, "--size", "s0=4"):
        if not text.isdecimal():
            raise ArgumentError(f"the size of {name} is {text!r}", where="--size", next="give a number, as in s0=4")
        found[name] = int(text)
    return found


def command(verb: str, subject: str, backend: str, options: Options, sizes: Mapping[str, int] | None = None) -> str:
    """``fairlead VERB SUBJECT --backend ...`` in backquotes, for a shell; `given_options` reads its options.

    Options that are as they are by default are left out; one that JSON cannot say is left out too, and named behind.
    """
    words, unsaid = ["fairlead", verb, subject, "--backend", backend], []
    for name, value in changed(options).items():
        try:
            words += ["--option", f"{name}={_text(value)}"]
        except TypeError:
            unsaid.append(repr(name))
    for name, size in (sizes or {}).items():
        words += ["--size", f"{name}={size}"]
    without = f" (without the option {', '.join(unsaid)}, which no command line can say)" if unsaid else ""
    return f"`{shlex.join(words)}`{without}"


def _split(pairs: Sequence[str], where: str, example: str) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not name or not separator:
            raise ArgumentError(f"{pair!r} is no NAME=VALUE", where=where, next=f"write it like {example}")
        yield name, text


def _value(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _text(value: object) -> str:
    """What `_value` reads as this value. Raises TypeError where nothing is."""
    if isinstance(value, str) and value.isprintable() and _value(value) == value:
        return value
    return msgspec.json.encode(value).decode()
