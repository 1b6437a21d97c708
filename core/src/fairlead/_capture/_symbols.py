"""Which symbols a graph uses, their ranges, and where they are read from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch

from fairlead._capture._types import Uncapturable
from fairlead.ir import Input, Node, Output, ScalarType, Symbol, TensorType, symbols_in

_Ranges = dict[str, tuple[int | None, int | None]]

_LEAST = -(2**63)
"""An integer that nothing bounds below; a size is bounded by 0."""


def _ranges_of(gm: torch.fx.GraphModule) -> _Ranges:
    """The range of each symbol, None where open, from the shape environment of the first symbolic size in sight."""
    for node in gm.graph.nodes:
        for number in _symbolic(node.meta.get("val")):
            known = number.node.shape_env.var_to_range
            return {str(s): (_bound(r.lower), _bound(r.upper)) for s, r in known.items()}
    return {}


def _symbolic(value: Any) -> Iterator[torch.SymInt]:
    if isinstance(value, torch.SymInt):
        yield value
    elif isinstance(value, torch.Tensor):
        sizes: tuple[Any, ...] = tuple(value.shape)
        yield from (d for d in sizes if isinstance(d, torch.SymInt))


def _bound(value: Any) -> int | None:
    if not getattr(value, "is_Integer", False):
        return None
    number = int(value)
    return number if abs(number) < 2**62 else None


def sources_of(inputs: Sequence[Input]) -> dict[str, tuple[int, int | None]]:
    """The input, and the dimension of it, that shows each symbol; inputs that are integers come first."""
    sources: dict[str, tuple[int, int | None]] = {}
    for index, item in enumerate(inputs):
        if isinstance(item.value.type, ScalarType) and item.name.isidentifier():
            sources.setdefault(item.name, (index, None))
    for index, item in enumerate(inputs):
        if isinstance(item.value.type, TensorType):
            for axis, d in enumerate(item.value.type.shape):
                if isinstance(d, str) and d.isidentifier():
                    sources.setdefault(d, (index, axis))
    return sources


def symbols_of(
    gm: torch.fx.GraphModule,
    inputs: Sequence[Input],
    nodes: Sequence[Node],
    outputs: Sequence[Output],
    scope: Collection[str] = (),
) -> tuple[Symbol, ...]:
    """The symbols that a graph uses, but for those in scope; `Uncapturable` where one has no source in its inputs."""
    used = symbols_in(*(i.value for i in inputs), *nodes, *(o.value for o in outputs)).difference(scope)
    if not used:
        return ()
    sources, ranges = sources_of(inputs), _ranges_of(gm)
    missing = sorted(used - sources.keys())
    if missing:
        raise Uncapturable(f"the size {missing[0]}, which is known only after data has been computed")
    return tuple(_symbol(s, source, ranges) for s, source in sources.items() if s in used)


def _symbol(name: str, source: tuple[int, int | None], ranges: _Ranges) -> Symbol:
    low, high = ranges.get(name, (None, None))
    least = _LEAST if source[1] is None else 0
    return Symbol(name, least if low is None else low, high, source)
