"""The StableHLO of a graph, for people and for other tools."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.ir import Graph, ScalarType

__all__ = ["text"]


def text(graph: Graph, sizes: Mapping[str, int] | None = None) -> str:
    """The graph as the text of a StableHLO module, as it is given to XLA.

    ``sizes`` gives each symbol a value, and each integer input under the name ``inN``, N being its index. Weights are
    inputs, laid out as in torch. What has to hold, such as of indices, is one more result: a vector of booleans.
    Raises `ValueError` on a node that the backend declines, and where a size is missing.

    >>> from fairlead.ir import Builder
    >>> b = Builder("g")
    >>> b.output(b.op("aten.neg.default", b.input("f32[b, 3]", "x")))
    >>> module = text(b.graph(), {"b": 2})
    >>> "stablehlo.negate" in module, "tensor<2x3xf32>" in module
    (True, True)
    """
    import torch

    from fairlead_openxla._lower import write

    given = sizes or {}
    _refuse_declined(graph)
    _refuse_unknown(graph, given)
    found: str = write(graph, given, {}, torch.device("cpu")).lowered.as_text()
    return found


def _refuse_declined(graph: Graph) -> None:
    from fairlead_openxla._support import supports

    declined = {node.op: answer.reason for node in graph.walk() if not (answer := supports(node)).accepted}
    if declined:
        shown = "; ".join(f"{op}: {reason}" for op, reason in declined.items())
        raise _error(graph, f"the graph has what is not written for XLA: {shown}", "write the Parts without it")


def _refuse_unknown(graph: Graph, sizes: Mapping[str, int]) -> None:
    numbers = [f"in{i}" for i, item in enumerate(graph.inputs) if isinstance(item.value.type, ScalarType)]
    missing = [name for name in (*(s.name for s in graph.symbols), *numbers) if name not in sizes]
    if missing:
        wanted = ", ".join(f'"{name}": 8' for name in missing)
        raise _error(
            graph, f"StableHLO is written for sizes: {', '.join(missing)} has none", f"text(graph, {{{wanted}}})"
        )


def _error(graph: Graph, what: str, what_next: str) -> ValueError:
    return ValueError(f"{what}\n  from: fairlead-openxla, graph @{graph.name}\n  next: {what_next}")
