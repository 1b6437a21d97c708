"""Numbers that are nearly zero, taken for zero while a session runs that gains from it, and by nobody else's code.

A softmax gives 4e-44 for what a mask of -100 leaves out, as Swin's does, and products of such numbers take a processor
several times as long as of others.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import torch

from fairlead.ir import Graph

__all__ = ["FLUSH", "as_before", "flushed", "has_softmax"]

FLUSH = "session.set_denormal_as_zero"
"""The entry of a session's configuration. Its own threads go by it, and whoever calls does not."""


def has_softmax(graph: Graph) -> bool:
    """Whether there is a softmax in the graph, or an attention, which has one in it, or the gradient of one."""
    return any("softmax" in node.op or "attention" in node.op for node in graph.walk())


@contextlib.contextmanager
def as_before() -> Iterator[None]:
    """Leave this thread as it was: ONNX Runtime sets it up as the first session of a process asks for."""
    flushes = sys.float_info.min / 2 == 0.0
    try:
        yield
    finally:
        torch.set_flush_denormal(flushes)


@contextlib.contextmanager
def flushed() -> Iterator[None]:
    """Have this thread take numbers that are nearly zero for zero meanwhile."""
    with as_before():
        torch.set_flush_denormal(True)
        yield
