"""Places of equal elements: which of them an op tells is open, and each is as right as the one that eager tells.

What is documented stays one answer: ``max`` and ``argmax`` tell the first of equal elements, a stable sort keeps their
order. PyTorch's documentation leaves the rest open: a sort that is not asked to be stable ("the relative order of
values which compare equal is not guaranteed"), ``topk`` ("the indices of tied elements are not guaranteed to be
stable"), ``median`` ("does not necessarily contain the first occurrence"), ``kthvalue`` ("for any of them"), and says
nothing of ``mode``, ``cummax`` and ``cummin``. ``mode`` gives "a value which appears most often", so its value is open
as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from fairlead.interpret import to_fx
from fairlead.ir import Graph, Node, Output, Value, opset

__all__ = ["Places", "tells_open_places"]

_KEEPS_DIM = frozenset({"sort", "topk", "cummax", "cummin"})
_EACH_ONCE = frozenset({"sort", "topk"})
_OPEN = _KEEPS_DIM | {"kthvalue", "median", "nanmedian", "mode"}


def tells_open_places(node: Node) -> bool:
    """Whether the node's second result tells one of several places that are all right.

    >>> from fairlead.ir import Builder
    >>> b = Builder()
    >>> _ = b.ops("aten.sort.stable", b.input("f32[3]"), stable=True)
    >>> _ = b.ops("aten.topk.default", b.input("f32[3]"), 2)
    >>> [tells_open_places(node) for node in b.graph().nodes]
    [False, True]
    """
    if _name(node) not in _OPEN or len(node.results) != 2 or node.results[1] is None:
        return False
    return _argument(node, "stable") is not True


@dataclass(frozen=True)
class _Open:
    """A node of a graph, with the outputs that its value and its places are, and the one of `_sources` it reads."""

    node: Node
    value: int | None
    place: int
    source: int


class Places:
    """The open places among a graph's outputs."""

    def __init__(self, graph: Graph) -> None:
        outputs = {o.value.id: i for i, o in enumerate(graph.outputs) if isinstance(o.value, Value)}
        nodes = [n for n in graph.nodes if tells_open_places(n) and _id(n.results[1]) in outputs]
        self._open = tuple(
            _Open(n, outputs.get(_id(n.results[0])), outputs[_id(n.results[1])], i) for i, n in enumerate(nodes)
        )
        sources = tuple(Output(n.args[0]) for n in nodes if isinstance(n.args[0], Value))
        self._sources = to_fx(msgspec.structs.replace(graph, outputs=sources)) if sources else None

    def right(
        self, inputs: Sequence[Any], eager: Sequence[torch.Tensor], got: Sequence[torch.Tensor]
    ) -> Mapping[int, torch.Tensor]:
        """By output, which elements of ``got`` are right; other outputs have but one answer."""
        if self._sources is None:
            return {}
        with torch.no_grad():
            sources = list(self._sources(*inputs))
        found: dict[int, torch.Tensor] = {}
        for item in self._open:
            found.update(_right(item, sources[item.source], eager, got))
        return found


def _right(
    item: _Open, source: torch.Tensor, eager: Sequence[torch.Tensor], got: Sequence[torch.Tensor]
) -> Mapping[int, torch.Tensor]:
    place = got[item.place]
    if not source.dim() or not place.numel():
        return {}
    name, dim = _name(item.node), int(_argument(item.node, "dim"))
    shrunk = name not in _KEEPS_DIM and place.dim() < source.dim()

    def rows(x: torch.Tensor) -> torch.Tensor:
        return (x.unsqueeze(dim) if shrunk else x).movedim(dim, -1)

    along, told, eagers = source.movedim(dim, -1), rows(place), rows(eager[item.place])
    exists = (told >= 0) & (told < along.shape[-1])
    picked, wanted = (along.gather(-1, i) for i in (told.clamp(0, along.shape[-1] - 1), eagers))
    same = _equal(picked, wanted)
    if name in _EACH_ONCE:
        same &= _once(told)
    if name in ("cummax", "cummin"):
        same &= told <= torch.arange(told.shape[-1])
    found: dict[int, torch.Tensor] = {}
    if name == "mode":
        most = _count(along, wanted)
        same = _count(along, picked) == most
        if item.value is not None:
            value = rows(got[item.value])
            same &= _equal(picked, value)
            found[item.value] = _back(_count(along, value) == most, dim, shrunk)
    return {**found, item.place: _back(same & exists, dim, shrunk)}


def _back(rows: torch.Tensor, dim: int, shrunk: bool) -> torch.Tensor:
    whole = rows.movedim(-1, dim)
    return whole.squeeze(dim) if shrunk else whole


def _equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | ((a != a) & (b != b))


def _count(along: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """How often each value is in its row."""
    return _equal(along.unsqueeze(-1), values.unsqueeze(-2)).sum(-2)


def _once(told: torch.Tensor) -> torch.Tensor:
    """Which places are told once in their row."""
    order = told.sort(dim=-1, stable=True)
    again = torch.zeros_like(told, dtype=torch.bool)
    again[..., 1:] = order.values[..., 1:] == order.values[..., :-1]
    return ~torch.zeros_like(again).scatter(-1, order.indices, again)


def _name(node: Node) -> str:
    return node.op.removeprefix("aten.").partition(".")[0]


def _id(value: Value | None) -> int:
    return -1 if value is None else value.id


def _argument(node: Node, name: str) -> Any:
    known = opset.spec(node.op)
    names = [p.name for p in opset.signature(known.signature).operands] if known is not None else []
    return node.args[names.index(name)] if name in names else None
