"""What the canonical form leaves out or renames: names of symbols and process groups, ordinals of devices."""

from __future__ import annotations

import msgspec

from fairlead.ir._groups import ProcessGroup
from fairlead.ir._model import Argument, Graph, Node, Symbol
from fairlead.ir._types import ScalarType, TensorType, Type
from fairlead.ir.dims import Dim, rename

_COLLECTIVES = ("_c10d_functional.", "_dtensor.")


class Naming:
    """Canonical names for the symbols, devices and process groups of a graph; a region shares those around it.

    Symbols are numbered in the order of the places they are read from, because the order in which an expression shows
    its symbols depends on their names. The ordinals of devices are numbered in the order in which they occur: two ranks
    that run one program on ``cuda:0`` and ``cuda:1`` have the same graph. So are process groups, whose names torch
    counts up in each process.
    """

    def __init__(self, graph: Graph, outer: Naming | None = None) -> None:
        self._symbols: dict[str, str] = dict(outer._symbols) if outer else {}
        self._devices: dict[str, str] = outer._devices if outer else {}
        self._renamed: dict[Dim, Dim] = {}
        self._groups: dict[str, str] = outer._groups if outer else {}
        first = len(self._symbols)
        ordered = sorted(graph.symbols, key=_place)
        self._symbols |= {s.name: f"s{first + i}" for i, s in enumerate(ordered)}
        self.symbols = tuple(msgspec.structs.replace(s, name=self._symbols[s.name]) for s in ordered)

    def dim(self, dim: Dim) -> Dim:
        if isinstance(dim, int):
            return dim
        known = self._renamed.get(dim)
        if known is None:
            known = self._renamed[dim] = rename(dim, self._symbols)
        return known

    def device(self, name: str) -> str:
        kind, colon, _ = name.partition(":")
        if not colon:
            return name
        if name not in self._devices:
            self._devices[name] = f"{kind}:{sum(d.partition(':')[0] == kind for d in self._devices)}"
        return self._devices[name]

    def arguments(self, node: Node) -> tuple[Argument, ...]:
        """The arguments of a node; the last of a collective is the name of its process group."""
        text = node.args[-1] if node.op.startswith(_COLLECTIVES) and node.args else None
        if not isinstance(text, str):
            return node.args
        group = ProcessGroup.from_text(text)
        name = self._groups.setdefault(group.name, str(len(self._groups)))
        return *node.args[:-1], str(ProcessGroup(name, group.size))

    def type(self, type_: Type) -> Type:
        if isinstance(type_, ScalarType):
            return type_
        shape = tuple(map(self.dim, type_.shape))
        strides = None if type_.strides is None else tuple(map(self.dim, type_.strides))
        return TensorType(type_.dtype, shape, strides, self.device(type_.device))


def _place(symbol: Symbol) -> tuple[int, int, int, float]:
    index, dim = symbol.source
    return index, -1 if dim is None else dim, symbol.lo, float("inf") if symbol.hi is None else symbol.hi
