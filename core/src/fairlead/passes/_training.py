"""What kind of a training graph it is."""

from __future__ import annotations

from fairlead.ir import Graph, Kind
from fairlead.passes._work import share_of

_GRADIENT = "aten.convolution_backward.default"
_CONVOLUTIONS = frozenset({"aten.convolution.default", _GRADIENT})
_MOST = 1 / 8
"""The share of a graph's work in convolutions from which on nothing is gained.

A Wav2Vec2, with 0.42, takes 1.05 to 1.3 times eager's time through backends that leave torch these gradients, and a
ConvNeXt, with 0.14, 1.3 to 1.6 times, but for TVM.
"""


def trains_convolutions(graph: Graph, *, share: float = _MOST) -> str | None:
    """Why a graph, of a training step or a whole one, is left to others: much of its work is convolutions.

    For backends without a gradient of convolutions that is as fast as torch's: between Parts that take turns with
    torch's ops, little is left to gain. None of any other graph. ``share``: how much of the work that is, at the most.

    >>> from fairlead.ir import Builder
    >>> def step(kind):
    ...     builder = Builder("g", kind)
    ...     x, w = builder.input("f32[1, 3, 8, 8]"), builder.input("f32[4, 3, 3, 3]")
    ...     given = (x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    ...     builder.output(builder.op("aten.convolution.default", *given, to="f32[1, 4, 6, 6]"))
    ...     return builder.graph()
    >>> trains_convolutions(step("forward"))
    'slower than eager here: training of which 100% is convolutions'
    >>> trains_convolutions(step("inference"))
    """
    if graph.kind == Kind.inference and not any(n.op == _GRADIENT for n in graph.nodes):
        return None
    found = share_of(graph, lambda node: node.op in _CONVOLUTIONS)
    return f"slower than eager here: training of which {found:.0%} is convolutions" if found > share else None
