"""The process groups that a graph's collectives name, as torch has them here."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from fairlead.errors import IRFormatError
from fairlead.ir import Argument, Node, ProcessGroup
from fairlead.passes import is_collective


def torchs_arguments(node: Node) -> tuple[Argument, ...]:
    """A node's arguments, where it is a collective with torch's name of its group.

    An `IRFormatError` where no group has that name here, or one of another size.
    """
    text = node.args[-1] if is_collective(node.op) and node.args else None
    if not isinstance(text, str):
        return node.args
    group = ProcessGroup.from_text(text)
    found = size_of_group(group.name)
    if found is None or found != (group.size or found):
        what = "does not exist here" if found is None else f"has {found} processes here, not {group.size}"
        raise IRFormatError(
            f"the process group {group.name!r} of {node.op} {what}",
            where=f"torch {torch.__version__}; {node.location or 'unknown line'}",
            next="run the graph in as many processes as it was captured in, once they have made their process groups",
        )
    return *node.args[:-1], group.name


def size_of_group(name: str) -> int | None:
    """How many processes the group with a name has; None where there is none."""
    if not dist.is_available() or not dist.is_initialized():
        return None
    c10d: Any = dist.distributed_c10d
    try:
        return int(c10d._resolve_process_group(name).size())
    except (RuntimeError, ValueError):
        return None
