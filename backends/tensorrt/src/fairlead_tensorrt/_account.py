"""What the builder said of the engine that it made: its layers with their types, and the memory that it takes.

TensorRT's own inspector reads an engine back for that, which takes a device. What the builder writes into its journal
is the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

__all__ = ["Account", "Layer", "account", "text"]


class Layer(msgspec.Struct, frozen=True):
    """One step of an engine: often many ops that were fused. ``dtypes`` are those of its operands and results."""

    name: str
    kind: str
    dtypes: tuple[str, ...]


class Account(msgspec.Struct, frozen=True):
    """The layers of an engine, in order, and its memory in bytes."""

    layers: tuple[Layer, ...]
    activations: int
    weights: int


_LAYER = re.compile(r"^Name: (?P<name>.*?), LayerType: (?P<kind>\w+), (?P<rest>.*)$", re.MULTILINE)
_DTYPE = re.compile(r"Datatype: (\w+)")
_MEMORY = re.compile(r"Total (Activation|Weights) Memory: (\d+) bytes")


def account(said: Iterable[str]) -> Account:
    """Read the journal of a build.

    >>> layers = "Layers:\\nName: fc, LayerType: gemm, Inputs: [ { Datatype: Half }]"
    >>> account(["Total Weights Memory: 544 bytes", layers])
    Account(layers=(Layer(name='fc', kind='gemm', dtypes=('Half',)),), activations=0, weights=544)
    """
    layers: tuple[Layer, ...] = ()
    memory = {"Activation": 0, "Weights": 0}
    for text in said:
        if text.startswith("Layers:"):
            layers = tuple(map(_layer, _LAYER.finditer(text)))
        elif found := _MEMORY.match(text):
            memory[found[1]] = int(found[2])
    return Account(layers, memory["Activation"], memory["Weights"])


def text(found: Account) -> str:
    """A line for each layer, and the memory.

    >>> print(text(Account((Layer("fc", "gemm", ("Half",)),), 0, 544)), end="")
    gemm                 fc                                       Half
    activations: 0 bytes, weights: 544 bytes
    """
    lines = [f"{layer.kind:<20} {layer.name:<40} {', '.join(layer.dtypes)}" for layer in found.layers]
    return "\n".join([*lines, f"activations: {found.activations} bytes, weights: {found.weights} bytes"]) + "\n"


def _layer(found: re.Match[str]) -> Layer:
    return Layer(found["name"], found["kind"], tuple(sorted(set(_DTYPE.findall(found["rest"])))))
