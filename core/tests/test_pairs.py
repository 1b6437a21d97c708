"""Options and sizes as words of a command line, there and back."""

from __future__ import annotations

import itertools
import shlex
from typing import Any

import pytest

from fairlead._options import parse
from fairlead._pairs import command, given_options, given_sizes
from fairlead.backend import Options


class Choice(Options, frozen=True, kw_only=True):
    """One of each kind."""

    text: str = ""
    count: int = 0
    share: float | None = 0.5
    ready: bool = False
    words: tuple[str, ...] = ()
    config: dict[str, Any] = {}


class Acme:
    name = "acme"
    options_type = Choice


@pytest.mark.parametrize(
    "options",
    [
        Choice(),
        Choice(text="bf16", count=-4, ready=True),
        *(
            Choice(text=text)
            for text in ("4", "true", "null", '"4"', "a b", "a=b", "it's", "$(date)", "[", "two\nlines")
        ),
        Choice(share=None),
        Choice(share=1.0, words=("x", "y z"), config={"a.b": {"c": [1, 2.5, "d", None]}}),
    ],
)
def test_the_options_that_a_shell_reads_are_those_of_the_program(options: Choice) -> None:
    text = command("bisect", "/tmp/a b/c.fir", "acme", options, {"s0": 5})
    assert "\n" not in text
    words = shlex.split(text.strip("`"))
    assert words[:5] == ["fairlead", "bisect", "/tmp/a b/c.fir", "--backend", "acme"]
    assert given_sizes(_of(words, "--size")) == {"s0": 5}
    assert parse(Acme(), given_options(_of(words, "--option"))) == options  # type: ignore[arg-type]


def test_what_is_as_by_default_is_left_out_and_what_json_cannot_say_is_named() -> None:
    assert command("replay", "a.fir", "acme", Choice()) == "`fairlead replay a.fir --backend acme`"
    text = command("replay", "a.fir", "acme", Choice(config={"hook": print}, count=2))
    assert text == (
        "`fairlead replay a.fir --backend acme --option count=2` "
        "(without the option 'config', which no command line can say)"
    )


def _of(words: list[str], option: str) -> list[str]:
    return [after for word, after in itertools.pairwise(words) if word == option]
