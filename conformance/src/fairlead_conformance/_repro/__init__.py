"""A failure as a script of its own: at most 30 lines, with the graph and its inputs shrunk beside it."""

from fairlead_conformance._repro._shrink import shrunk
from fairlead_conformance._repro._write import write_repro

__all__ = ["shrunk", "write_repro"]
