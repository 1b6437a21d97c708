"""What is right: a graph in float64, beside eager in the dtypes that it declares, and how far off a result may be.

A graph of exact ops has one right answer, bit by bit: eager's. Any other is judged element by element. An element is
right when it is near the exact one or near eager's, where near is what the ops may be wrong by, op class by op class,
with what the graph makes of it (see `Reference`). Where eager itself is further off, four times eager's error is near.
"""

from fairlead_conformance._oracle._any_order import adds_in_any_order, writes_in_any_order
from fairlead_conformance._oracle._compare import Comparison, compare
from fairlead_conformance._oracle._joint import Joint
from fairlead_conformance._oracle._places import tells_open_places
from fairlead_conformance._oracle._reference import Expected, Reference

__all__ = [
    "Comparison",
    "Expected",
    "Joint",
    "Reference",
    "adds_in_any_order",
    "compare",
    "tells_open_places",
    "writes_in_any_order",
]
