"""Random numbers that a program draws and does not use: torch leaves them out, and all that follow are then others."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["keep_draws"]


def keep_draws(gm: torch.fx.GraphModule) -> int:
    """Make unused random numbers of a Dynamo graph its last outputs; how many there are."""
    output = gm.graph.output_node()
    kept = [node for node in _unused(gm) if _draws(gm, node)]
    with gm.graph.inserting_before(output):
        shown = [gm.graph.call_method("detach", (_tensor_of(gm, node),)) for node in kept]
    if shown:
        output.args = ((*output.args[0], *shown),)  # type: ignore[misc]  # Dynamo's output is a tuple
        gm.recompile()
    return len(shown)


def _unused(gm: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """The nodes that no output is made of, in order."""
    used: set[torch.fx.Node] = set()
    for node in reversed(gm.graph.nodes):
        if node.op == "output" or node in used:
            used.update(node.all_input_nodes)
    return [n for n in gm.graph.nodes if n not in used and n.op not in ("output", "placeholder", "get_attr")]


def _tensor_of(gm: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.Node:
    """The node, or the first of its results where it has several."""
    if not isinstance(node.meta.get("example_value"), tuple | list):
        return node
    return gm.graph.call_function(operator.getitem, (node, 0))


def _draws(gm: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    """Whether torch asks a generator for numbers when the node runs, on the fake tensors that Dynamo had for it."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta.get("example_value"))
    known = pytree.tree_leaves([n.meta.get("example_value") for n in gm.graph.nodes])
    mode = next((x.fake_mode for x in known if isinstance(x, FakeTensor)), contextlib.nullcontext())
    seen = _Seen()
    try:
        with torch.no_grad(), mode, seen:
            _called(gm, node, args, kwargs)
    except Exception:  # what Dynamo did to make the node cannot be done again: it stays, as it may draw
        return isinstance(node.meta.get("example_value"), torch.Tensor)
    return seen.draws


def _called(gm: torch.fx.GraphModule, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
    match node.op:
        case "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        case "call_module":
            return gm.get_submodule(str(node.target))(*args, **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)


class _Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes whether an op runs whose result hangs on a generator."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draws = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        self.draws = self.draws or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))
