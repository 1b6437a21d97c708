"""The group of processes that a collective is about, as its argument names it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ProcessGroup"]


class ProcessGroup(NamedTuple):
    """What the ``group_name`` of a collective says: torch's name of the group, and how many processes it has.

    The size is None where the argument does not say it. The same program run by more or fewer processes is another
    graph; whoever runs a graph checks that the group that has the name has the size too.

    >>> ProcessGroup.from_text("tp@4")
    ProcessGroup(name='tp', size=4)
    >>> str(ProcessGroup("0", 2)), ProcessGroup.from_text("0").size
    ('0@2', None)
    """

    name: str
    size: int | None

    @classmethod
    def from_text(cls, text: str) -> ProcessGroup:
        """The group that an argument names."""
        name, at, size = text.rpartition("@")
        return cls(name, int(size)) if at and size.isdecimal() else cls(text, None)

    def __str__(self) -> str:
        """The argument."""
        return self.name if self.size is None else f"{self.name}@{self.size}"
