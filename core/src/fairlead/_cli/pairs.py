"""Options of the form NAME=VALUE, which may be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

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
