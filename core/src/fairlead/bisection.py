"""What `fairlead.bisect` finds: which rung of the ladder broke, and the smallest graph that shows it, as data."""

from __future__ import annotations

import enum

import msgspec

from fairlead.ir import Location

__all__ = ["Bisection", "Failure", "Rung"]


class Rung(enum.StrEnum):
    """A way to run the model; each has one more layer between PyTorch and the machine than the one before.

    ``eager`` is plain PyTorch, ``aot_eager`` what torch captures and runs op by op, ``interpreter`` the same as
    graphs of the IR after Fairlead's passes, and ``backend`` the Parts that the backend compiles.
    """

    eager = "eager"
    aot_eager = "aot_eager"
    interpreter = "interpreter"
    backend = "backend"


class Failure(enum.StrEnum):
    """How a rung broke: its process died, it raised, it gave no answer in time, or it gave wrong numbers."""

    crash = "crash"
    error = "error"
    hang = "hang"
    wrong = "wrong"


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``rung`` is the first that broke, None where none did; ``failure`` and ``detail`` say how.

    Where that is the backend: ``part`` is the name of the Part and ``part_nodes`` its number of nodes; ``nodes`` are
    those that are left, as text, and ``location`` the user's line of the last of them. ``file`` and ``script`` are
    the paths of what shows it again, ``reproduces`` whether the script did so when it was tried. ``random_inputs``:
    the file draws its tensors from a specification and holds none of the model's. ``ended`` is why the search ended
    before it was done, or empty; ``trials`` counts the graphs that the backend was given.

    >>> print(Bisection(subject="mlp", backend="acme", trials=2, seconds=3.2))
    mlp on acme: no rung breaks (2 graphs tried, 3 s)
    """

    subject: str
    backend: str
    rung: Rung | None = None
    failure: Failure | None = None
    detail: str = ""
    part: str = ""
    part_nodes: int = 0
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    location: Location | None = None
    random_inputs: bool = False
    file: str = ""
    script: str = ""
    reproduces: bool | None = None
    ended: str = ""
    trials: int = 0
    seconds: float = 0.0

    def to_json(self) -> str:
        """All of it as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        """A line for each thing that is known."""
        effort = f"({self.trials} graph{'s' * (self.trials != 1)} tried, {self.seconds:.0f} s)"
        if self.rung is None:
            lines = [f"{self.subject} on {self.backend}: no rung breaks {effort}"]
        else:
            lines = [f"{self.subject} on {self.backend}: {self.rung} breaks, {self.failure} {effort}", self.detail]
        if self.nodes:
            lines += [f"{len(self.nodes)} of {self.part_nodes} nodes of the Part {self.part} show it:", *self.nodes]
        if self.location is not None:
            lines.append(f"at {self.location}")
        if self.file:
            inputs = "random inputs" if self.random_inputs else "the model's own inputs"
            lines.append(f"{self.file}: the graph, with {inputs}")
        if self.script:
            shown = {True: "shows it again", False: "does not show it again", None: "was not tried"}[self.reproduces]
            lines.append(f"{self.script}: a script, which {shown}")
        if self.ended:
            lines.append(f"ended early: {self.ended}")
        return "\n".join(lines)
