"""The table of rules: what each op means, by its id."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from fairlead.ir import DType, Graph, Node
from fairlead.numpy._dtypes import Array


class Call(Protocol):
    """What a rule may know of the node that it computes, besides its arguments."""

    @property
    def node(self) -> Node:
        """The node itself."""
        ...

    @property
    def dtype(self) -> DType:
        """The declared dtype of the first result that somebody uses."""
        ...

    @property
    def rng(self) -> np.random.Generator:
        """Where random numbers come from."""
        ...

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """The declared shape of a result that somebody uses."""
        ...

    def dtype_of(self, index: int) -> DType:
        """The declared dtype of a result, that of the first used one where nobody uses it."""
        ...

    def strides(self, index: int) -> tuple[int, ...]:
        """The declared strides, in elements, of the tensor in an argument."""
        ...

    def region(self, graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run a body of the node."""
        ...


Rule = Callable[..., Any]
"""Takes the `Call` and the node's arguments; gives an array, or a tuple with one for each result.

Values are arrays, attributes Python numbers, dtypes `DType`, lists are lists. What is given back may be of a wider
element type: `run` rounds it to the declared one.
"""

_R = TypeVar("_R", bound=Rule)
_RULES: dict[str, Rule] = {}
_FAMILIES = (
    "activations", "attention", "complex_numbers", "control", "convolution", "distance", "embedding", "factories",
    "fourier", "indexing", "linear", "losses", "norms", "padding", "pointwise", "pooling", "random", "reductions",
    "recurrent", "resampling", "scans", "scatter", "sorting", "special", "views",
)  # fmt: skip


def op(*names: str) -> Callable[[_R], _R]:
    """Enter a rule for ops; a name without an overload is that of ``aten.<name>.default``."""

    def enter(rule: _R) -> _R:
        for name in names:
            _RULES[full_name(name)] = rule
        return rule

    return enter


def full_name(name: str) -> str:
    """The id of an op from how the families write it.

    >>> full_name("sin"), full_name("add.Tensor"), full_name("nn.bernoulli.default")
    ('aten.sin.default', 'aten.add.Tensor', 'nn.bernoulli.default')
    """
    if name.startswith(("nn.", "hop.", "prims.")):
        return name
    return f"aten.{name}" if "." in name else f"aten.{name}.default"


@functools.cache
def rules() -> dict[str, Rule]:
    """Every rule, by the id of its op."""
    for family in _FAMILIES:
        importlib.import_module(f"fairlead.numpy._{family}")
    return dict(sorted(_RULES.items()))


def supports(op: str) -> bool:
    """Whether `run` has a meaning for an op.

    >>> supports("aten.relu.default"), supports("aten.relu_.default")
    (True, False)
    """
    return op in rules()


__all__ = ["Array", "Call", "Rule", "full_name", "op", "rules", "supports"]
