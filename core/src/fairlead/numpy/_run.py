"""Runs a graph node by node, and says which node it was when one cannot be computed."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairlead.errors import ArgumentError, FairleadError, InterpretError
from fairlead.ir import (
    Argument,
    Complex,
    DimExpr,
    DType,
    Graph,
    Input,
    Node,
    TensorData,
    TensorType,
    Token,
    Value,
    dims,
    node_text,
    row_major,
    type_text,
)
from fairlead.numpy._dtypes import Array, array, cast, dtype_of
from fairlead.numpy._table import rules

SEED = 0


def run(graph: Graph, inputs: Sequence[Any], *, rng: np.random.Generator | None = None) -> tuple[Any, ...]:
    """Run a graph once: one item for each output, an array, an int or None.

    ``inputs`` has one item for each input of the graph: arrays of the declared dtype and shape (bf16 and float8 are
    ``ml_dtypes``'), `TensorData` as a file's constants have it, and ints for scalar inputs. Arrays are not written to;
    outputs may share their memory. An array has the declared dtype and shape; its strides mean nothing.

    Random ops draw from ``rng`` in the order of the nodes, and from ``numpy.random.Generator(PCG64(0))`` where none is
    given: their distribution is the op's, their numbers are not torch's.

    Raises `ArgumentError` for inputs that do not fit, and `InterpretError` for an op that has no meaning here or that
    refuses its operands.
    """
    return _Interpreter(graph, rng or np.random.Generator(np.random.PCG64(SEED))).run(inputs)


class _Interpreter:
    def __init__(self, graph: Graph, rng: np.random.Generator) -> None:
        self.graph = graph
        self.rng = rng
        self.values: dict[int, Any] = {}
        self.symbols: dict[str, int] = {}

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        if len(inputs) != len(self.graph.inputs):
            raise self._misfit(f"{len(inputs)} inputs, not {len(self.graph.inputs)}")
        given = [array(x) if isinstance(x, TensorData) else x for x in inputs]
        for index, item in enumerate(self.graph.inputs):
            self.values[item.value.id] = self._input(index, item, given[index])
        self._read_symbols(given)
        for index, item in enumerate(self.graph.inputs):
            self._check_shape(index, item, given[index])
        last = _last_uses(self.graph)
        with np.errstate(all="ignore"):
            for position, node in enumerate(self.graph.nodes):
                self._node(node)
                for dead in last.get(position, ()):
                    self.values.pop(dead, None)
        return tuple(self.value(o.value) for o in self.graph.outputs)

    def within(self, region: Graph) -> _Interpreter:
        """An interpreter of a body, which knows the sizes of the graph around it."""
        inner = _Interpreter(region, self.rng)
        inner.symbols.update(self.symbols)
        return inner

    def _input(self, index: int, item: Input, given: Any) -> Any:
        type_ = item.value.type
        if not isinstance(type_, TensorType):
            if not isinstance(given, int | float | np.number):
                raise self._misfit(f"input {index} is a {type(given).__name__}, not a number")
            return given
        if not isinstance(given, np.ndarray | np.generic):
            raise self._misfit(f"input {index} is a {type(given).__name__}, not an array")
        if given.dtype.name != type_.dtype.long_name or given.ndim != type_.rank:
            found = f"{given.dtype.name}{list(given.shape)}"
            raise self._misfit(f"input {index} is {found}, not {type_text(type_)}")
        return np.asarray(given)

    def _read_symbols(self, given: Sequence[Any]) -> None:
        for symbol in self.graph.symbols:
            index, axis = symbol.source
            size = int(given[index] if axis is None else given[index].shape[axis])
            high = math.inf if symbol.hi is None else symbol.hi
            if not symbol.lo <= size <= high:
                raise self._misfit(f"the size {symbol.name} is {size}, not in [{symbol.lo}, {high}]")
            self.symbols[symbol.name] = size

    def _check_shape(self, index: int, item: Input, given: Any) -> None:
        if isinstance(item.value.type, TensorType) and given.shape != self.sizes(item.value.type.shape):
            raise self._misfit(f"input {index} has the shape {list(given.shape)}, not {type_text(item.value.type)}")

    def _misfit(self, what: str) -> ArgumentError:
        wanted = ", ".join(type_text(i.value.type) for i in self.graph.inputs[:8])
        more = len(self.graph.inputs) - 8
        wanted += f" and {more} more" if more > 0 else ""
        return ArgumentError(what, where=f"graph @{self.graph.name}", next=f"give it {wanted or 'nothing'}")

    def sizes(self, shape: Sequence[dims.Dim]) -> tuple[int, ...]:
        return tuple(d if isinstance(d, int) else dims.evaluator(d)(self.symbols) for d in shape)

    def value(self, arg: Argument) -> Any:
        """An argument as rules take it."""
        match arg:
            case Value():
                return self.values[arg.id]
            case DimExpr(expr=expr):
                return dims.evaluator(expr)(self.symbols)
            case Token(kind="dtype", name=name):
                return DType(name)
            case Complex(re=re, im=im):
                return complex(re, im)
            case tuple():
                return [self.value(a) for a in arg]
        return arg

    def _node(self, node: Node) -> None:
        rule = rules().get(node.op)
        if rule is None:
            raise InterpretError(
                f"the NumPy interpreter has no meaning for {node.op}",
                where=f"{node.location or 'unknown line'}: {node_text(node)}",
                next="decompose it (fairlead.passes.decompose), or run the graph with torch (fairlead.interpret.run)",
            )
        try:
            found = rule(_Call(self, node), *map(self.value, node.args))
            results = found if isinstance(found, tuple) else (found,)
            if len(results) != len(node.results):
                raise ValueError(f"it has {len(results)} results, not {len(node.results)}")
            for result, value in zip(results, node.results, strict=True):
                if value is not None:
                    self.values[value.id] = self._finished(result, value)
        except FairleadError:
            raise
        except Exception as error:
            raise InterpretError(
                f"{node.op} refuses its operands: {type(error).__name__}: {error}",
                where=f"{node.location or 'unknown line'}: {node_text(node)}",
                next=f"its operands are {', '.join(map(self._shown, node.operands())) or 'none'}",
            ) from error

    def _finished(self, result: Any, value: Value) -> Any:
        """A result in the declared dtype; a ValueError where it has another shape than declared."""
        if not isinstance(value.type, TensorType):
            return result
        done = np.asarray(cast(result, value.type.dtype))
        if done.shape != self.sizes(value.type.shape):
            raise ValueError(f"%{value.id} has the shape {list(done.shape)}, not {list(self.sizes(value.type.shape))}")
        return done

    def _shown(self, value: Value) -> str:
        found = self.values.get(value.id)
        text = f"{dtype_of(found)}{list(found.shape)}" if isinstance(found, np.ndarray) else repr(found)
        return f"%{value.id}: {text}"


class _Call:
    """A node and what its rule may ask; see `fairlead.numpy._table.Call`."""

    def __init__(self, interpreter: _Interpreter, node: Node) -> None:
        self.node = node
        self._interpreter = interpreter

    @property
    def rng(self) -> np.random.Generator:
        return self._interpreter.rng

    @functools.cached_property
    def dtype(self) -> DType:
        return next(r.type.dtype for r in self.node.results if r is not None)

    def dtype_of(self, index: int) -> DType:
        result = self.node.results[index]
        return self.dtype if result is None else result.type.dtype

    def shape(self, index: int = 0) -> tuple[int, ...]:
        result = self.node.results[index]
        assert result is not None, "a rule asks only for shapes of results that are used"
        return self._interpreter.sizes(result.tensor.shape)

    def strides(self, index: int) -> tuple[int, ...]:
        value = self.node.args[index]
        assert isinstance(value, Value), "the argument is a tensor"
        type_ = value.tensor
        return self._interpreter.sizes(row_major(type_.shape) if type_.strides is None else type_.strides)

    def region(self, graph: Graph, inputs: Sequence[Array]) -> tuple[Any, ...]:
        return self._interpreter.within(graph).run(inputs)


def _last_uses(graph: Graph) -> Mapping[int, Sequence[int]]:
    """The values that nobody needs after a node, by the node's position: memory is kept no longer than it is used."""
    kept = {v.id for v in graph.output_values()}
    position: dict[int, int] = {}
    for index, node in enumerate(graph.nodes):
        position.update((r.id, index) for r in node.results if r is not None)
        position.update((v.id, index) for v in node.operands())
    found: dict[int, list[int]] = {}
    for value, index in position.items():
        if value not in kept:
            found.setdefault(index, []).append(value)
    return found
