"""The process groups of collectives: torch knows them by name, the IR by name and size."""

from __future__ import annotations

from fairlead.interpret._groups import size_of_group
from fairlead.ir import Argument, ProcessGroup
from fairlead.passes import is_collective


def with_group_size(op: str, args: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """The arguments of an op; the last of a collective, the name of its group, with the group's size."""
    if not is_collective(op) or not isinstance(args[-1], str):
        return args
    return *args[:-1], str(ProcessGroup(args[-1], size_of_group(args[-1])))
