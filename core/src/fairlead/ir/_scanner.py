"""The tokens of the text form: its grammar in patterns, and a scanner that walks along a text with them."""

from __future__ import annotations

import enum
import json
import re
from typing import NoReturn, TypeVar

from fairlead.errors import IRFormatError

E = TypeVar("E", bound=enum.StrEnum)

_LARGEST = 1 << 28

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_FLOAT = r"-?(?:inf\b|nan\b|\d++(?:\.\d++(?:[eE][+-]?\d++)?|[eE][+-]?\d++))"
_INT = r"-?\d{1,20}(?![\w.])"
# Possessive, so that none backtracks over a long text.
_GRAMMAR = {
    "the end": r"\Z",
    "the version": r"fairlead-ir (\d{1,9})\.(\d{1,9})\b",
    "a producer": rf"producer\s+({_STRING})\s+({_STRING})",
    "an op of the table": rf"op\s+([\w.]++)\s+(-?\d{{1,18}})\s+({_STRING})",
    "a symbol": (
        r"symbol\s+(\w++)\s+in\s*\[(-?\d{1,20}), (-?\d{1,20}|inf)\]\s+from\s+in(\d{1,18})(?:\.dim(\d{1,18}))?\b"
    ),
    "`graph @name kind {`": rf"graph\s+@([\w.$-]++|{_STRING})\s+(\w++)\s*+\{{",
    "`region @name kind {`": rf"region\s+@([\w.$-]++|{_STRING})\s+(\w++)\s*+\{{",
    "an input": rf"in\s+%(\d{{1,18}})\s+(\w++)\s+({_STRING})\s*+:",
    "a type": (r"(\w++)(?:(\[)([^][\n]*+)\](?:\s+strides(\[)([^][\n]*+)\])?(?:\s+@(\w++(?::\d++)?))?)?"),
    "an output": r"out\s",
    "a role": r"(\w++)",
    "a target": r"->\s*in(\d{1,18})\b",
    "an alias": r"aliases\s+in(\d{1,18})\b",
    "a result": r"(?:_(?![\w.])|%(\d{1,18}))",
    "an op": r"([A-Za-z_][\w.]*+)\s*+\(",
    "a location": (rf"loc\(({_STRING}):(-?\d{{1,18}})(?:\s+in\s+({_STRING}))?(?:\s+at\s+({_STRING}))?\)"),
    "an argument": (
        rf"(?:%(?P<value>\d{{1,18}})|(?P<float>{_FLOAT})|(?P<int>{_INT})|(?P<word>(?:none|true|false)\b)"
        rf"|(?P<string>{_STRING})|(?P<list>\[)|<(?P<dim>[^<>\n]*+)>"
        rf"|#complex<(?P<re>{_FLOAT}), (?P<im>{_FLOAT})>|#(?P<kind>\w++)<(?P<name>[\w.:-]++|{_STRING})>)"
    ),
    "_": r"_(?![\w.])",
    **{mark: re.escape(mark) for mark in "{}[](),=:"},
}


class _Patterns(dict[str, "re.Pattern[str]"]):
    """The grammar compiled when it is first used; each pattern takes the space before it."""

    def __missing__(self, what: str) -> re.Pattern[str]:
        self[what] = re.compile(r"\s*+" + _GRAMMAR[what], re.ASCII)
        return self[what]


_PATTERNS = _Patterns()


class Scanner:
    """A place in a text, from which the grammar is matched. Reading is linear in the text, and safe on any."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._at = self._last = 0
        self._where = where
        if len(text) > _LARGEST:
            self.fail(f"{len(text)} characters, more than the {_LARGEST} that a text may have")

    def string(self, quoted: str) -> str:
        """A JSON string as the text that it stands for."""
        try:
            text: str = json.loads(quoted)
        except ValueError as error:
            self.fail(f"a string with {error}")
        return text

    def member(self, enumeration: type[E], text: str) -> E:
        """The member of an enumeration that a word names."""
        try:
            return enumeration(text)
        except ValueError:
            self.fail(f"{text[:80]!r}, which is no {enumeration.__name__.lower()}")

    def peek(self, what: str) -> re.Match[str] | None:
        """What of the grammar comes next, if it is this."""
        return _PATTERNS[what].match(self._text, self._at)

    def maybe(self, what: str) -> re.Match[str] | None:
        """What of the grammar comes next, if it is this; the text is read up to its end then."""
        found = _PATTERNS[what].match(self._text, self._at)
        if found:
            self._last, self._at = self._at, found.end()
        return found

    def expect(self, what: str) -> re.Match[str]:
        """What of the grammar has to come next; an `IRFormatError` where it does not."""
        found = self.maybe(what)
        if found is None:
            rest = self._text[self._at : self._at + 200].lstrip()
            self._last = self._at
            self.fail(f"{rest[:40]!r} where {what if len(what) > 1 else f'`{what}`'} belongs")
        return found

    def fail(self, what: str) -> NoReturn:
        """Raise an `IRFormatError` with the line and column of what was read last."""
        at = len(self._text) - len(self._text[self._last :].lstrip())
        line, column = self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)
        raise IRFormatError(
            f"not the text of a graph: {what}",
            where=f"{self._where}, line {line}, column {column}",
            next="write the text again with fairlead.ir.to_text, or mend that line",
        )
