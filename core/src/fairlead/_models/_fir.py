"""A ``.fir`` file as a model: the graph as a module that holds the file's constants, and random inputs that fit it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from fairlead._models._model import Dynamic, Model
from fairlead._torch_types import TORCH_DTYPES
from fairlead.errors import ArgumentError
from fairlead.interpret import restride, tensor_of, to_fx
from fairlead.ir import File, Graph, Input, Role, Symbol, TensorType, dims, read

__all__ = ["WEIGHTS", "check_sizes", "example_inputs", "given_constants", "load_fir"]

WEIGHTS = (Role.parameter, Role.buffer, Role.constant)

SIZE = 4
"""What an unknown size is, where its range allows it."""


def load_fir(spec: str) -> Model:
    """The graph in the file. Inputs that it has no constants for are drawn; a mutation is returned, not performed."""
    file = read(Path(spec))
    if len(file.module.graphs) != 1:
        raise ArgumentError(
            f"{spec!r} has {len(file.module.graphs)} graphs, a model is one",
            where=f"its graphs: {', '.join(g.name for g in file.module.graphs)}",
            next=f"'fairlead replay {spec}' runs each of them",
        )
    graph = file.graph
    given = given_constants(file)
    values = example_inputs(graph, given)
    held = {index: values[index] for index, each in enumerate(graph.inputs) if index in given or each.role in WEIGHTS}
    args = tuple(value for index, value in enumerate(values) if index not in held)
    return Model(spec, _Saved(graph, held), args, {}, _dynamic(graph, held))


def given_constants(file: File, graph: int = 0) -> dict[int, torch.Tensor]:
    """The tensors that a file holds for inputs of one of its graphs, copied: torch may write to them."""
    return {index: tensor_of(data) for index, data in file.constants(graph).items()}


def check_sizes(file: File, where: str, chosen: Mapping[str, int]) -> None:
    """Raise `ArgumentError` where a size is of no symbol in the file, or none that the symbol may have."""
    symbols = [s for graph in file.module.graphs for s in graph.symbols]
    known = ", ".join(sorted({_range(s) for s in symbols})) or "none"
    for name, size in chosen.items():
        ranges = [s for s in symbols if s.name == name]
        if not ranges or any(size < s.lo or (s.hi is not None and size > s.hi) for s in ranges):
            what = f"{name} cannot be {size}" if ranges else f"there is no symbol {name!r}"
            raise ArgumentError(what, where=f"{where}, whose symbols are: {known}", next="give one of these a size")


def example_inputs(
    graph: Graph, given: Mapping[int, torch.Tensor], chosen: Mapping[str, int] | None = None
) -> tuple[Any, ...]:
    """A value for each input, in the layout that its type says: the given one, or one that is drawn to fit.

    ``chosen`` says what sizes symbols have.
    """
    sizes = {s.name: min(max(s.lo, SIZE), SIZE if s.hi is None else s.hi) for s in graph.symbols} | dict(chosen or {})
    return tuple(
        _laid_out(given[index], each, sizes) if index in given else _drawn(each, sizes)
        for index, each in enumerate(graph.inputs)
    )


def _range(symbol: Symbol) -> str:
    return f"{symbol.name} from {symbol.lo}" + ("" if symbol.hi is None else f" to {symbol.hi}")


class _Saved(torch.nn.Module):
    """Takes the inputs that are not held, in order, and returns what the graph returns."""

    def __init__(self, graph: Graph, held: Mapping[int, Any]) -> None:
        super().__init__()
        self.graph = to_fx(graph)
        self.order = tuple(range(len(graph.inputs)))
        for index, tensor in held.items():
            if graph.inputs[index].role is Role.parameter and tensor.is_floating_point():
                self.register_parameter(f"in{index}", torch.nn.Parameter(tensor))
            else:
                self.register_buffer(f"in{index}", tensor)

    def forward(self, *inputs: Any) -> Any:
        rest = iter(inputs)
        return self.graph(*(getattr(self, f"in{i}") if hasattr(self, f"in{i}") else next(rest) for i in self.order))


def _drawn(each: Input, sizes: Mapping[str, int]) -> Any:
    type_ = each.value.type
    if not isinstance(type_, TensorType):
        return sizes.get(each.name, SIZE)
    shape, dtype = [dims.evaluate(dim, sizes) for dim in type_.shape], TORCH_DTYPES[type_.dtype]
    if dtype.is_floating_point or dtype.is_complex:
        return _laid_out(_floats(each.role, shape).to(dtype), each, sizes)
    # Integers are mostly indices, and every table has a first and a second row.
    return _laid_out(torch.randint(0, 2, shape).to(dtype), each, sizes)


def _floats(role: Role, shape: list[int]) -> torch.Tensor:
    """Weights as a network starts with, so that depth alone makes no infinities; buffers are often variances."""
    if role is Role.buffer:
        return torch.rand(shape)
    drawn = torch.randn(shape)
    return drawn / max(1, drawn.numel() // shape[0]) ** 0.5 if role is Role.parameter and len(shape) > 1 else drawn


def _laid_out(tensor: torch.Tensor, each: Input, sizes: Mapping[str, int]) -> torch.Tensor:
    type_ = each.value.type
    assert isinstance(type_, TensorType)
    return restride(tensor, [dims.evaluate(dim, sizes) for dim in type_.strides]) if type_.strides else tensor


def _dynamic(graph: Graph, held: Mapping[int, Any]) -> Dynamic:
    names = {symbol.name for symbol in graph.symbols}
    free = [each.value.type for index, each in enumerate(graph.inputs) if index not in held]
    found: Dynamic = {}
    for position, type_ in enumerate(free):
        shape = type_.shape if isinstance(type_, TensorType) else ()
        if marked := {dim: size for dim, size in enumerate(shape) if isinstance(size, str) and size in names}:
            found[str(position)] = marked
    return found
