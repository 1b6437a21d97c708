"""Whether inputs are those that code was generated for, by one comparison of all.

Inductor asserts each input's sizes and strides by a call from Python in the generated code, hundreds in each step of
training. Torch's own guards compare all of them at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

from torch._inductor.codegen.wrapper import PythonWrapperCodegen

from fairlead.interpret import picking, torch_dtype
from fairlead.ir import Graph, TensorType
from fairlead_inductor._layouts import Layouts
from fairlead_inductor._patched import in_this_thread

__all__ = ["TRUSTED", "Expected", "trusting"]

_TensorGuards: Any = getattr(importlib.import_module("torch._C._dynamo.guards"), "TensorGuards", None)
_ASSERTS = "codegen_input_size_asserts"
"""What Inductor calls to write the assertions."""


class Expected:
    """The inputs that code is for, of a graph whose sizes are all numbers.

    ``layouts`` says how they have to lie. What torch's guards compare beside that, such as who requires gradients, is
    as it was when they were asked last. ``steady``: those that are not compared where they lie where they lay.
    """

    def __init__(self, graph: Graph, layouts: Layouts, steady: Collection[int] = ()) -> None:
        self._graph = graph
        self._layouts = layouts
        self._others = picking([i for i in range(len(graph.inputs)) if i not in steady])
        self._guards: Any = None
        self._guards_of_others: Any = None

    @staticmethod
    def is_known(graph: Graph) -> bool:
        """Whether all inputs of the graph are tensors, with sizes that are numbers, and torch has what it takes."""
        tensors = all(isinstance(item.value.type, TensorType) for item in graph.inputs)
        has_both = _TensorGuards is not None and hasattr(PythonWrapperCodegen, _ASSERTS)
        return has_both and tensors and not graph.symbols and bool(graph.inputs)

    def are(self, inputs: Sequence[Any], *, stayed: bool = False) -> bool:
        """Whether they are as those that were accepted last; ``stayed`` where the steady ones lie where those lay."""
        if stayed and self._guards_of_others is not None:
            return bool(self._guards_of_others.check(*self._others(inputs)))
        return self._guards is not None and bool(self._guards.check(*inputs))

    def accept(self, inputs: Sequence[Any]) -> None:
        """Look at each; a `ValueError` where one is not what code was generated for."""
        for place, tensor in enumerate(inputs):
            item = self._graph.inputs[place]
            shape, dtype = item.value.tensor.shape, torch_dtype(item.value.tensor.dtype)
            strides = self._layouts.of(place, {})
            lies = all(n == 1 or a == b for n, a, b in zip(shape, tensor.stride(), strides, strict=False))
            if tuple(tensor.shape) != shape or tensor.dtype != dtype or not (lies or not tensor.numel()):
                raise ValueError(
                    f"input {place} ({item.name}) is {tensor.dtype} of shape {list(tensor.shape)} with strides "
                    f"{tensor.stride()}, where code was generated for {dtype} of {list(shape)} with {strides}"
                )
        self._guards, self._guards_of_others = (
            _TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
            for tensors in (inputs, self._others(inputs))
        )


def trusting(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Inductor's ``inner_compile`` for code that asserts nothing of its inputs: its caller has looked at them."""

    def compiler(*args: Any, **how: Any) -> Any:
        with in_this_thread(PythonWrapperCodegen, _ASSERTS, lambda found: lambda wrapper: None):
            return inner(*args, **how)

    return compiler


TRUSTED = {"aot_inductor.metadata": {"inputs": "trusted"}}
"""A part of Inductor's configuration that says nothing here but to its cache, which would take one code for the other.
"""
