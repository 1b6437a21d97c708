"""Generated code called as it is, past what AOTAutograd puts around it.

A graph of the IR writes to no input and wraps nothing, so there is nothing left to do there but to make results that
are views anew, which nobody asks for, and to count and look at each input and result: milliseconds in a step of a large
network.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._guards import TracingContext
from torch._inductor.output_code import CompiledFxGraph

from fairlead_inductor._launches import shorten_launches

__all__ = ["Unwrapped"]


class Unwrapped:
    """An ``inner_compile`` of Inductor's that keeps what it compiles, for a graph of so many inputs and outputs.

    ``first``: gives what is around the first call of what was compiled.
    """

    def __init__(
        self,
        inner: Callable[..., Any],
        inputs: int,
        outputs: int,
        first: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._inner = inner
        self._first = first
        self._inputs, self._outputs = inputs, outputs
        self._made: list[Any] = []

    def __call__(self, module: torch.fx.GraphModule, *args: Any, **how: Any) -> Any:
        takes = len(module.graph.find_nodes(op="placeholder"))  # a frozen graph has weights within
        made = self._inner(module, *args, **how)
        self._made.append(made if takes == self._inputs and _passes_through() else None)
        return made

    def function(self, wrapped: Callable[..., Any]) -> Callable[[list[Any]], Any]:
        """What was compiled, called with a list that it empties; ``wrapped`` where more is to be done than to call it.

        Weights may require gradients, of which it computes none.
        """
        if len(self._made) != 1 or not isinstance(self._made[0], CompiledFxGraph):
            return lambda inputs: wrapped(*_taken(inputs))
        (made,), outputs = self._made, self._outputs
        has_run = False

        def call(inputs: list[Any]) -> Any:
            nonlocal has_run
            if not has_run:
                with torch.no_grad(), self._first():
                    results = made(inputs)
                has_run = True
                shorten_launches(made.current_callable)
            elif torch.is_grad_enabled():
                with torch.no_grad():
                    results = made(inputs)
            else:
                results = made(inputs)
            return results if len(results) == outputs else results[:outputs]

        return call


def _taken(inputs: list[Any]) -> tuple[Any, ...]:
    given = tuple(inputs)
    inputs.clear()
    return given


def _passes_through() -> bool:
    """Whether the graph that is being compiled returns first what the whole does, in its order."""
    metadata: Any = getattr(TracingContext.try_get(), "fw_metadata", None)
    try:
        return not (
            metadata.mutated_inp_runtime_indices
            or metadata.is_rng_op_functionalized
            or metadata.tokens
            or any(o.output_type.name in _OF_INPUTS for o in metadata.output_info)
        )
    except AttributeError:
        return False


_OF_INPUTS = ("alias_of_input", "is_input")
"""Results that AOTAutograd makes of inputs."""
