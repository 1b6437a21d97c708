"""What is right, for ``verify``, ``fairlead compare`` and ``fairlead bisect``: float64, within what eager is off by."""

from fairlead._accuracy._float64 import in_float64, moved
from fairlead._accuracy._graph import Reference, Verdict, named
from fairlead._accuracy._rule import ALLOWANCE, FLOOR, GRADIENT, Bar, Case, Findings, Tensors, bar, floor_of

__all__ = [
    "ALLOWANCE",
    "FLOOR",
    "GRADIENT",
    "Bar",
    "Case",
    "Findings",
    "Reference",
    "Tensors",
    "Verdict",
    "bar",
    "floor_of",
    "in_float64",
    "moved",
    "named",
]
