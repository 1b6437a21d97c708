"""What `fairlead.explain` finds out about a program, as data: its frames, its graph breaks, its guards, its times."""

from __future__ import annotations

from fairlead._stages import Span, Stage
from fairlead.explanation._data import Break, CompileTimes, Explanation, Frame, Guard, Line, Recompilation

__all__ = [
    "Break",
    "CompileTimes",
    "Explanation",
    "Frame",
    "Guard",
    "Line",
    "Recompilation",
    "Span",
    "Stage",
]
