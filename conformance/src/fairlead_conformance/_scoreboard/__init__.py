"""A static site of all backends: what each one's report says, side by side."""

from fairlead_conformance._scoreboard._kills import KillScore, read_kills
from fairlead_conformance._scoreboard._site import write_site

__all__ = ["KillScore", "read_kills", "write_site"]
