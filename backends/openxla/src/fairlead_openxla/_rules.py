"""The table of rules: how each op of the IR is written in jax's operations."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from fairlead.ir import Node
from fairlead_openxla._layouts import Places, Wanted

__all__ = ["Entry", "Rule", "Unless", "full_name", "rule", "rules", "wanted"]

Rule: TypeAlias = Callable[..., Any]
"""Takes the `Call` and the node's arguments; gives an array, or a tuple with one for each result.

Tensors are jax arrays, attributes Python numbers, dtypes `DType`, lists tuples. What is given back may be of a wider
element type: lowering rounds it to the declared one. A result that nobody uses may be None.
"""

Unless: TypeAlias = Callable[[Node], str | None]
"""Why a rule does not write a node, None where it does."""

_R = TypeVar("_R", bound=Rule)


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule, what it declines, whether it is right for complex numbers, and how it wants a weight to lie."""

    write: Rule
    unless: Unless | None = None
    takes_complex: bool = False
    places: Places | None = None


_ENTRIES: dict[str, Entry] = {}
_FAMILIES = (
    "activations", "arithmetic", "attention", "convolution", "creation", "distance", "embedding", "exponentials",
    "fourier", "groups", "indexing", "logic", "losses", "matmul", "norms", "norms_backward", "padding", "patches",
    "pooling", "reductions", "scatter", "sorting", "views",
)  # fmt: skip


def rule(
    *names: str, unless: Unless | None = None, takes_complex: bool = False, places: Places | None = None
) -> Callable[[_R], _R]:
    """Enter a rule for ops; a name without an overload is that of ``aten.<name>.default``."""

    def enter(write: _R) -> _R:
        for name in names:
            _ENTRIES[full_name(name)] = Entry(write, unless, takes_complex, places)
        return write

    return enter


def full_name(name: str) -> str:
    """The id of an op from how the families write it.

    >>> full_name("sin"), full_name("add.Tensor"), full_name("nn.scaled_dot_product_attention")
    ('aten.sin.default', 'aten.add.Tensor', 'nn.scaled_dot_product_attention')
    """
    if name.startswith(("nn.", "prims.", "transformers.")):
        return name
    return f"aten.{name}" if "." in name else f"aten.{name}.default"


@functools.cache
def rules() -> Mapping[str, Entry]:
    """Every rule, by the id of its op. Imports jax."""
    for family in _FAMILIES:
        importlib.import_module(f"fairlead_openxla._{family}")
    return _ENTRIES


def wanted(node: Node, *, tiled: bool = True) -> Wanted | None:
    """The operand that the rule of a node wants in a layout of its own, as factors of tiles only where they are."""
    places = rules()[node.op].places
    found = None if places is None else places(node)
    if found is None or tiled:
        return found
    index, layout = found
    return index, dataclasses.replace(layout, tiled=False)
