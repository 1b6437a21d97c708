"""What a graph of the family is, and how a function that writes one is entered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.ir import Builder, Graph, Value
from fairlead_conformance._case import Level

__all__ = ["Shape", "entering", "entering_dynamic", "given"]


@dataclass(frozen=True)
class Shape:
    """A graph, and what is needed to run it. ``sizes``: values of its symbols, one executable for all of them."""

    write: Callable[[Builder], None]
    level: Level
    dtypes: tuple[str, ...]
    needs: tuple[str, ...] = ()
    sizes: tuple[Mapping[str, int], ...] = ({},)
    mandatory: bool = False
    cost: float = 0.05

    def graph(self) -> Graph:
        """The graph, written anew."""
        builder = Builder(self.write.__name__)
        self.write(builder)
        return builder.graph()


_Write = Callable[[Builder], None]


def entering(shapes: dict[str, Shape]) -> Callable[..., Callable[[_Write], _Write]]:
    """A decorator that enters functions which write a graph, by their names; its arguments are fields of `Shape`."""

    def shape(level: Level = Level.L1, dtypes: tuple[str, ...] = ("f32",), **more: Any) -> Callable[[_Write], _Write]:
        def enter(write: _Write) -> _Write:
            shapes[write.__name__] = Shape(write, level, dtypes, **more)
            return write

        return enter

    return shape


def entering_dynamic(shapes: dict[str, Shape]) -> Callable[..., Callable[[_Write], _Write]]:
    """The same for graphs whose symbols take the values of the decorator's arguments, one after another."""

    def dynamic(*sizes: Mapping[str, int]) -> Callable[[_Write], _Write]:
        return entering(shapes)(needs=("dynamic_shapes",), sizes=sizes)

    return dynamic


def given(value: Value | None) -> Value:
    """A result that is not left out."""
    assert value is not None
    return value
