"""The structs of an explanation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from fairlead._stages import Span, Stage, own_seconds
from fairlead.placement import Placement

__all__ = ["Break", "CompileTimes", "Explanation", "Frame", "Guard", "Line", "Recompilation"]


class Line(msgspec.Struct, frozen=True):
    """A line of the user's program, with its text where the source is there."""

    file: str
    line: int
    function: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


class Break(msgspec.Struct, frozen=True):
    """A place where a graph had to end before its function did.

    ``reason`` in one line; ``explanation`` and ``hints`` are torch's, or ours where torch has none; ``link`` leads to
    torch's page on it, or is empty. ``stack``: the lines of the user's program, the innermost last; ``context`` is what
    torch noted for its developers.
    """

    reason: str
    explanation: str = ""
    hints: tuple[str, ...] = ()
    stack: tuple[Line, ...] = ()
    link: str = ""
    context: str = ""

    @property
    def line(self) -> Line | None:
        """The innermost line."""
        return self.stack[-1] if self.stack else None


class Guard(msgspec.Struct, frozen=True):
    """Something that has to hold for compiled code to be used again.

    ``kind`` is torch's name for the check, ``source`` the expression that it is about (empty for what is global), and
    ``checks`` the conditions where torch spells them out.
    """

    kind: str
    source: str = ""
    checks: tuple[str, ...] = ()
    line: Line | None = None


class Frame(msgspec.Struct, frozen=True):
    """A function, or what is left of it after a graph break, that torch compiled or gave up on.

    ``id`` is torch's: the number of the function and, after the slash, how often it had been compiled before. ``ops``:
    the ops of its graph and how often each is in it, as the user's program calls them; empty where there was none.
    ``recompiled`` is the guard that failed, where this is not the first time; ``failed`` why there is no compiled
    code. ``start`` in seconds since the epoch and ``seconds`` on the clock, backends included.
    """

    id: str
    line: Line
    ops: Mapping[str, int] = {}
    breaks: tuple[Break, ...] = ()
    guards: tuple[Guard, ...] = ()
    recompiled: str = ""
    failed: str = ""
    start: float = 0.0
    seconds: float = 0.0


class CompileTimes(msgspec.Struct, frozen=True):
    """Seconds on the clock by stage; print it for a table."""

    stages: Mapping[str, float]

    def __str__(self) -> str:
        from fairlead.explanation._text import table_of_times

        return table_of_times(self)


class Recompilation(msgspec.Struct, frozen=True):
    """A function that was compiled again, and the guard that failed."""

    line: Line
    reason: str

    def __str__(self) -> str:
        return f"{self.line}: {self.reason}"


class Explanation(msgspec.Struct, frozen=True):
    """Everything that the first call of a program made. ``seconds``: what the call took in all, on the clock.

    ``spans`` are the stages that Fairlead went through, by their beginning.
    """

    subject: str
    backend: str
    frames: tuple[Frame, ...]
    placement: Placement
    spans: tuple[Span, ...]
    seconds: float

    @property
    def graphs(self) -> tuple[Frame, ...]:
        """The frames that have a graph."""
        return tuple(f for f in self.frames if f.ops)

    @property
    def breaks(self) -> tuple[Break, ...]:
        """All graph breaks, each place and reason once, in the order in which they were met."""
        found: dict[tuple[str, Line | None], Break] = {}
        for each in (b for f in self.frames for b in f.breaks):
            found.setdefault((each.reason, each.line), each)
        return tuple(found.values())

    @property
    def recompilations(self) -> tuple[Frame, ...]:
        """The frames that were compiled before, for something that is no longer so."""
        return tuple(f for f in self.frames if f.recompiled)

    @property
    def ops(self) -> int:
        """How many ops are in the graphs."""
        return sum(sum(f.ops.values()) for f in self.frames)

    @property
    def guards(self) -> Mapping[str, int]:
        """How many guards of each kind there are, the most frequent first."""
        return dict(Counter(g.kind for f in self.frames for g in f.guards).most_common())

    @property
    def times(self) -> Mapping[str, float]:
        """Seconds on the clock by stage, each without what other stages took within it; they add up to ``seconds``.

        Stages that run side by side count each; then there is nothing left for `Stage.run`.
        """
        inside = sum(s.seconds for s in self.spans if s.stage == Stage.autograd)
        first = (Stage.autograd, Stage.capture, Stage.passes, Stage.placement)
        dynamo = max(sum(f.seconds for f in self.frames) - inside, 0.0)
        times = {Stage.dynamo: dynamo, **dict.fromkeys(first, 0.0), **own_seconds(self.spans)}
        times[Stage.run] = max(self.seconds - sum(times.values()), 0.0)
        return times

    def to_json(self) -> str:
        """All of it as JSON."""
        return msgspec.json.encode(self).decode()

    def to_html(self) -> str:
        """All of it as one page with a timeline, which refers to nothing outside of itself.

        Raises `ExtraMissingError` where the extra ``report`` is not installed.
        """
        from fairlead.explanation._html import to_html

        return to_html(self)

    def __str__(self) -> str:
        """What a terminal shows: graphs, breaks, placement, guards and times."""
        from fairlead.explanation._text import render

        return render(self)
