"""What becomes of each op in each dtype: run by the backend, taken apart for it, or declined, by its own answers."""

from fairlead_conformance._coverage._gather import Cell, Coverage, Outcome, cases, gather
from fairlead_conformance._coverage._page import to_html

__all__ = ["Cell", "Coverage", "Outcome", "cases", "gather", "to_html"]
