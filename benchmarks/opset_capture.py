"""What the programs of `opset_coverage` share: a sink that notes the ops of captured graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fairlead._capture import Captured, _fx
from fairlead.interpret import to_fx
from fairlead.ir import Kind, verify
from fairlead.passes import _canonicalize, canonicalize, recognize_composites, split_dropout

__all__ = ["Ops", "line"]

REPLACED = _canonicalize._RULES.keys() | _fx._PHYSICAL.keys()
"""Ops of ATen that are written otherwise in the IR."""


class Ops:
    """A sink that keeps the ops of what is captured, and computes with the interpreter.

    ``refused`` is why a graph could not be captured, if one could not: its ops are then those of ATen.
    """

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.kinds: set[Kind] = set()
        self.refused = ""

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        """Note the ops of a graph as backends get it."""
        graph = verify(recognize_composites(split_dropout(canonicalize(captured.graph))))
        self.kinds.add(graph.kind)
        self.found.update(n.op for n in graph.walk())
        module, constants = to_fx(graph), list(captured.constants.values())
        return _boxed(lambda *args: list(module(*args, *constants)))

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        """Note the ops that torch traced, but for those that the IR has not, and why the graph was not captured."""
        self.kinds.add(kind)
        self.refused = self.refused or reason
        self.found.update(op for node in gm.graph.nodes if (op := _op(node)) and op not in REPLACED)
        return _boxed(gm)


def _op(node: torch.fx.Node) -> str:
    """The op of an FX node; of one that torch keeps in order by a token, the op that it is around."""
    target = node.args[1] if str(node.target) == "with_effects" else node.target
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    return str(target) if isinstance(target, torch._ops.OpOverload) else ""


def line(entry: str, direction: str, ops: set[str], refused: str = "", error: str = "") -> dict[str, Any]:
    """What a program prints of an entry: its ops, and why it was not captured where it was not."""
    return {"entry": entry, "direction": direction, "ops": sorted(ops), "refused": refused, "error": error}


def _boxed(function: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """The function as AOTAutograd calls it: with a list, which it empties."""

    def call(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return function(*given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
