"""A graph as Dynamo captured it, which torch runs in eager mode: op for op what the program does uncompiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

__all__ = ["Original", "differentiable", "trainable"]


class Original:
    """What runs in place of a compiled graph once that is found to be slower; until then, what it is compared with.

    While `is_watched` is true, a call of the graph goes through `call`: its inputs are wanted for a trial, or it is run
    as captured. ``forward`` is that of Dynamo's module.
    """

    def __init__(self, forward: Callable[..., Any]) -> None:
        self.forward = forward
        self._given = threading.local()
        self.is_watched = False
        self.has_taken_over = False

    def call(self, inputs: Sequence[Any], compiled: Callable[..., Any]) -> Any:
        """Run the graph as captured, or as ``compiled`` does, with the inputs kept meanwhile."""
        if self.has_taken_over:
            return self.forward(*inputs)
        self._given.inputs = inputs
        try:
            return compiled(*inputs)
        finally:
            del self._given.inputs

    def watch(self) -> None:
        """From now on a trial may ask for `taking`."""
        self.is_watched = True

    def leave(self) -> None:
        """No trial will ask any more."""
        self.is_watched = self.has_taken_over

    def take_over(self) -> None:
        """Run all calls from the next one on."""
        self.has_taken_over = self.is_watched = True

    def taking(self, args: Sequence[Any], written: Sequence[int]) -> Callable[[Sequence[Any]], Any] | None:
        """The captured graph as a function of what the compiled one is called with in this thread, now ``args``.

        None where that cannot be told, or tensors that it writes, which are at ``written``, are not to be found.
        """
        inputs: Sequence[Any] | None = getattr(self._given, "inputs", None)
        if inputs is None:
            return None
        places = {id(x): place for place, x in enumerate(args) if isinstance(x, torch.Tensor)}
        sources = [places.get(id(x)) for x in inputs]
        if not set(written) <= set(sources):
            return None
        others = [x if p is None else None for x, p in zip(inputs, sources, strict=True)]

        def run(given: Sequence[Any]) -> Any:
            return self.forward(*(x if p is None else given[p] for x, p in zip(others, sources, strict=True)))

        return run


def trainable(given: Sequence[Any]) -> list[Any]:
    """The tensors anew, so that gradients of what is computed with them are nobody else's."""
    return [x.detach().requires_grad_() if isinstance(x, torch.Tensor) and x.requires_grad else x for x in given]


def differentiable(results: Any) -> list[torch.Tensor]:
    """The results that have gradients."""
    return [x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor) and x.requires_grad]
