"""Stages as ranges of a vendor's profiler: NVTX for Nsight, ITT for VTune, both through torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairlead.errors import ArgumentError

__all__ = ["Ranges", "ranges"]


class Ranges(NamedTuple):
    """How a range is begun, by name, and how the last one of the thread is ended."""

    push: Callable[[str], object]
    pop: Callable[[], object]


def ranges(kind: str) -> Ranges | None:
    """The functions of ``nvtx`` or ``itt``; None for an empty name. Raises `ArgumentError` for another one."""
    if not kind:
        return None
    if kind not in ("nvtx", "itt"):
        raise ArgumentError(
            f"FAIRLEAD_TRACE_RANGES is {kind!r}", where="the environment of this process", next="set it to nvtx or itt"
        )
    import torch

    if kind == "nvtx":
        return Ranges(torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop)
    return Ranges(torch.profiler.itt.range_push, torch.profiler.itt.range_pop)
