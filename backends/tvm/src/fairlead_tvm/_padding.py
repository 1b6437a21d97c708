"""Rules of padding with elements of the tensor itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.ir import Dim, Node, Value
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Index
from fairlead_tvm._call import Call
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._rules import Rule, rule
from fairlead_tvm._tvm import Expr
from fairlead_tvm._views import moved

__all__: list[str] = []


def _of_nothing(node: Node) -> str | None:
    value = node.args[0]
    assert isinstance(value, Value)
    return "padding of nothing" if 0 in value.tensor.shape else None


def _mirrored(at: Expr, size: Expr) -> Expr:
    """The place as far within as ``at`` is outside, the edge itself left out."""
    last = size - 1
    return last - t.abs_(last - t.abs_(at))


def _nearest(at: Expr, size: Expr) -> Expr:
    return t.minimum(t.maximum(at, t.index(0)), size - 1)


def _padded(place: Callable[[Expr, Expr], Expr]) -> Rule:
    def write(c: Call, x: Array, pad: tuple[Dim, ...]) -> Array:
        """Two numbers a dimension, the last dimension first; negative ones cut away."""
        before: list[Dim] = [0] * x.ndim
        for i in range(len(pad) // 2):
            before[x.ndim - 1 - i] = pad[2 * i]
        around = set(range(x.ndim - len(pad) // 2, x.ndim))

        def index(k: Kernel, at: Index) -> list[Any]:
            return [
                place(t.index(i - k.size(start)), t.index(k.size(size))) if d in around else i
                for d, (i, start, size) in enumerate(zip(at, before, x.shape, strict=True))
            ]

        return moved(c.program, x, c.shape(), index, cost=4)

    return write


rule("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", unless=_of_nothing)(_padded(_mirrored))
rule("replication_pad1d", "replication_pad2d", "replication_pad3d", unless=_of_nothing)(_padded(_nearest))
