"""Numbers that are nearly zero, taken for zero while a session runs that gains from it, and by nobody else's code.

A softmax gives 4e-44 for what a mask of -100 leaves out, as Swin's does, and products of such numbers take a processor
several times as long as of others.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import torch

from fairlead.ir import DType, Graph, TensorType

__all__ = ["FLUSH", "as_before", "flushed", "gains"]

FLUSH = "session.set_denormal_as_zero"
"""The entry of a session's configuration. Its own threads go by it, and whoever calls does not."""


def gains(graph: Graph) -> bool:
    """Whether a softmax is in the graph, or an attention, which has one in it, or the gradient of one; and no float64.

    Processors have one switch for both types, and numbers of float64 come as near to zero only where somebody means it.
    """
    values = (*(i.value for i in graph.inputs), *(v for node in graph.walk() for v in node.results if v is not None))
    if any(isinstance(v.type, TensorType) and v.type.dtype is DType.f64 for v in values):
        return False
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
