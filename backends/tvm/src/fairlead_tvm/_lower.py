"""Writes a graph as kernels and the Relax function that calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.ir import Graph, Node, ScalarType, Value
from fairlead_tvm._arrays import Array, Computed, Memory, Shape, Strided
from fairlead_tvm._call import Call
from fairlead_tvm._layouts import Layout
from fairlead_tvm._numbers import cast, constant
from fairlead_tvm._program import Program
from fairlead_tvm._reduce import reduced
from fairlead_tvm._rules import rules, wanted
from fairlead_tvm._schedule import DEFAULT, Schedule
from fairlead_tvm._tvm import Module

__all__ = ["Written", "size_names", "write"]

_CHEAP = 6
"""What an element that several nodes read may cost, in additions, to be computed by each of them."""
_LONG = 150
"""The cost from which an expression is computed in a kernel of its own."""


@dataclass(frozen=True, slots=True)
class Written:
    """A graph in Relax. ``checks`` says what is wrong where one of the last results is false.

    ``shapes`` has, for each result of the graph that comes in another shape, the declared one.
    """

    module: Any
    checks: tuple[tuple[type[Exception], str], ...]
    shapes: tuple[Shape | None, ...]


def size_names(graph: Graph) -> dict[str, tuple[int, int | None]]:
    """The integers that a call passes, by name: symbols, and integer inputs, each with the input that shows it."""
    known = {s.name: s.source for s in graph.symbols}
    shown = {source for source in known.values() if source[1] is None}
    for i, item in enumerate(graph.inputs):
        if isinstance(item.value.type, ScalarType) and (i, None) not in shown:
            known[f"in{i}"] = (i, None)
    return known


def write(
    graph: Graph, layouts: Mapping[int, tuple[Layout, ...]], schedules: Mapping[int, Schedule], *, threads: int
) -> Written:
    """The graph for all values of its symbols; weights lie in their ``layouts``, once for each.

    ``schedules`` has those of nodes, by their place in the graph, that are not the default.
    """
    names = size_names(graph)
    program = Program(list(names), threads=threads)
    parameters = [Module.sizes(list(program.sizes.variables.values()))] if names else []
    scalars = {source[0]: name for name, source in names.items() if source[1] is None}
    for i, item in enumerate(graph.inputs):
        if i in scalars:
            program.values[item.value.id] = scalars[i]
        else:
            parameters += _parameters(program, item.value, layouts.get(item.value.id), i)
    outputs: list[Any] = []
    with program.module.function(parameters, outputs):
        users = graph.users()
        for at, node in enumerate(graph.nodes):
            _write(node, program, users, schedules.get(at, DEFAULT))
        shapes = _outputs(graph, program, outputs)
        outputs += [program.whole(reduced(program, holds, None, "all")).memory.value for holds, *_ in program.checks]
    return Written(program.module.finished(), tuple((error, text) for _, error, text in program.checks), shapes)


def _parameters(program: Program, value: Value, layouts: tuple[Layout, ...] | None, index: int) -> list[Any]:
    found = []
    shape, dtype = value.tensor.shape, value.tensor.dtype
    for n, layout in enumerate(layouts or (None,)):
        lying = shape if layout is None else layout.shape(shape)  # type: ignore[arg-type]  # weights are static
        parameter = Module.parameter(f"in{index}_{n}", [program.size(d) for d in lying], dtype)
        array = Strided.whole(Memory(parameter, lying, dtype))
        found.append(parameter)
        if 0 in shape:  # of which nothing is read, and whose strides TVM would find wrong
            program.values[value.id] = _empty(value)
        elif layout is None or (layout.order == tuple(range(len(shape))) and not layout.panel):
            program.values[value.id] = array
        else:
            program.placed[value.id, layout] = array
            program.values.setdefault(value.id, _Shape(shape, dtype))
    return found


class _Shape(Array):
    """A weight of which a rule asks the shape and dtype alone: it lies in the layout that the rule wants."""


def _outputs(graph: Graph, program: Program, outputs: list[Any]) -> tuple[Shape | None, ...]:
    """Give each result in memory of its own."""
    taken = {id(a.memory) for a in program.values.values() if isinstance(a, Strided) and _is_input(graph, program, a)}
    shapes: list[Shape | None] = []
    for value in graph.output_values():
        found = program.whole(program.values[value.id])
        if id(found.memory) in taken:
            found = program.copied(found)
        taken.add(id(found.memory))
        outputs.append(found.memory.value)
        shapes.append(None if found.memory.shape == found.shape else found.shape)
    return tuple(shapes)


def _is_input(graph: Graph, program: Program, array: Strided) -> bool:
    given = (program.values[i.value.id] for i in graph.inputs)
    return any(isinstance(g, Strided) and g.memory is array.memory for g in given)


def _write(node: Node, program: Program, users: Mapping[int, int], schedule: Schedule) -> None:
    if all(0 in value.tensor.shape for value in node.results if value is not None):
        for used in filter(None, node.results):
            program.values[used.id] = _empty(used)
        return
    call = Call(node, program, wanted(node), schedule)
    found = rules()[node.op].write(call, *map(program.argument, node.args))
    results = found if isinstance(found, tuple) else (found,)
    for result, value in zip(results, node.results, strict=False):
        if value is None:
            continue
        if 0 in value.tensor.shape:
            program.values[value.id] = _empty(value)
            continue
        assert result is not None, f"the rule of {node.op} leaves out a result that is used"
        program.values[value.id] = _settled(program, _finished(result, value), users.get(value.id, 0))


def _empty(value: Value) -> Array:
    filled = constant(0, value.tensor.dtype)
    return Computed(value.tensor.shape, value.tensor.dtype, lambda k, _: k.element(filled, ()), cost=0)


def _finished(result: Array, value: Value) -> Array:
    """In the declared element type and shape."""
    done = cast(result, value.tensor.dtype)
    if done.shape == value.tensor.shape:
        return done
    assert done.ndim == value.tensor.rank, f"a result is {done.shape}, not {value.tensor.shape}"
    from fairlead_tvm._views import spread

    return spread(done, value.tensor.shape)


def _settled(program: Program, array: Array, users: int) -> Array:
    """Computed now where that is better than once for each who reads it."""
    if isinstance(array, Strided):
        return array
    if array.cost > _LONG or (users > 1 and (array.products or array.cost > _CHEAP)):
        return program.stored(array)
    return array
