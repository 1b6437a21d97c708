"""Lazily conjugated and negated tensors: captured graphs, and the backends of their Parts, see what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fairlead.interpret import restride
from fairlead.ir import Graph, Kind, TensorType


def resolving(run: Callable[[list[Any]], Any], gm: torch.fx.GraphModule, graph: Graph) -> Callable[[list[Any]], Any]:
    """The callable, given resolved tensors where the graph may be called with lazy ones.

    Dynamo guards on the bits of a program's inputs; those of gradients are what autograd makes of them.
    """
    if not may_be_lazy(gm, graph):
        return run

    def call(args: list[Any]) -> Any:
        for index, arg in enumerate(args):
            if isinstance(arg, torch.Tensor) and (arg.is_conj() or arg.is_neg()):
                args[index] = restride(arg.resolve_conj().resolve_neg(), arg.stride())
        return run(args)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def may_be_lazy(gm: torch.fx.GraphModule, graph: Graph) -> bool:
    """Whether a graph may be called with tensors that are lazily conjugated or negated."""
    metas = [n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"]
    if any(isinstance(m, torch.Tensor) and (m.is_conj() or m.is_neg()) for m in metas):
        return True
    types = (i.value.type for i in graph.inputs)
    return graph.kind is Kind.backward and any(isinstance(t, TensorType) and t.dtype.is_complex for t in types)
