"""Complex numbers as pairs of real ones: nodes and graphs on them become nodes and graphs on their parts.

ONNX runtimes have no complex numbers. Within a graph the two parts are two tensors, so that what only moves numbers is
done twice, and the rules of real ops write all of it. Inputs and outputs are one tensor with a last dimension of 2, as
`torch.view_as_real` shows the memory of a complex tensor.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlead.ir import Graph, Input, Node, Output, TensorType, Value
from fairlead.passes import Emitter, substitute
from fairlead_onnx import (  # noqa: F401 - each enters its rules
    _complex_arithmetic,
    _complex_fourier,
    _complex_functions,
    _complex_products,
    _complex_views,
)
from fairlead_onnx._complex_call import RULES, ComplexCall, complex_dtypes
from fairlead_onnx._complex_ops import REAL, Ops, Pair
from fairlead_onnx._nodes import has_elements
from fairlead_onnx._writer import Declined

__all__ = ["has_complex_type", "is_complex", "on_parts", "without_complex"]


def is_complex(node: Node) -> bool:
    """Whether a node, or one in its regions, reads or writes complex numbers."""
    return bool(complex_dtypes(node)) or any(is_complex(inner) for region in node.regions for inner in region.nodes)


def has_complex_type(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype.is_complex


def on_parts(node: Node) -> list[Node]:
    """The real nodes that stand for one on complex numbers. Raises `Declined` where there is no rule for it."""
    operands = {v.id: v.tensor for v in node.operands() if has_complex_type(v)}
    first = 1 + max(v.id for v in (*node.operands(), *node.results) if v is not None)
    pairs = {
        id_: Pair(*(Value(first + 2 * i + which, _part_type(type_)) for which in range(2)))
        for i, (id_, type_) in enumerate(operands.items())
    }
    emit = Emitter(first + 2 * len(pairs))
    _results(node, emit, pairs)
    return emit.nodes


def without_complex(graph: Graph) -> Graph:
    """The graph on the parts of its numbers; the same graph where none is complex.

    Before: `on_parts` has a rule for every node that is not real. After: no value is complex. Inputs and outputs that
    were have one more dimension, of 2.
    """
    is_real = not any(map(is_complex, graph.nodes)) and not any(has_complex_type(i.value) for i in graph.inputs)
    return graph if is_real else _Rewriting(graph).graph()


class _Rewriting:
    """A graph being rewritten: the parts of complex values, and what stands for real ones that were made anew."""

    def __init__(self, graph: Graph) -> None:
        self._old = graph
        self._first = graph.next_id()
        self._emit = Emitter(self._first + len(graph.inputs))
        self._pairs: dict[int, Pair] = {}
        self._renamed: dict[int, Value] = {}
        self._stacked: dict[int, Pair] = {}

    def graph(self) -> Graph:
        inputs = tuple(self._input(index, given) for index, given in enumerate(self._old.inputs))
        for node in self._old.nodes:
            self._emit.location = node.location
            self._write(msgspec.structs.replace(node, args=substitute(node.args, self._renamed)))
        outputs = tuple(map(self._output, self._old.outputs))
        return msgspec.structs.replace(self._old, inputs=inputs, nodes=tuple(self._emit.nodes), outputs=outputs)

    def _input(self, index: int, given: Input) -> Input:
        if not has_complex_type(given.value):
            return given
        part = _part_type(given.value.tensor)
        value = Value(self._first + index, msgspec.structs.replace(part, shape=(*part.shape, 2)))
        self._pairs[given.value.id] = _ops(self._emit, part).unstack(value)
        return msgspec.structs.replace(given, value=value)

    def _write(self, node: Node) -> None:
        if is_complex(node):
            made = self._known(node) or _results(node, self._emit, self._pairs)
        elif (shown := self._shown(node)) is not None:
            made = (shown,)
        else:
            self._emit.nodes.append(node)
            return
        for result, found in zip(node.results, made, strict=True):
            if result is not None and isinstance(found, Pair):
                self._pairs[result.id] = found
            elif result is not None and isinstance(found, Value):
                self._renamed[result.id] = found
                if node.op == "aten.view_as_real.default":
                    self._stacked[found.id] = self._pairs[next(node.operands()).id]

    def _known(self, node: Node) -> tuple[Pair] | None:
        """The parts of a tensor that was made of parts, and not changed since."""
        operand = next(node.operands(), None)
        if node.op != "aten.view_as_complex.default" or operand is None or operand.id not in self._stacked:
            return None
        return (self._stacked[operand.id],)

    def _shown(self, node: Node) -> Value | None:
        """The part that a node picks out of a tensor made of parts."""
        if node.op != "aten.select.int" or not isinstance(node.args[0], Value):
            return None
        pair, axis, index = self._stacked.get(node.args[0].id), node.args[1], node.args[2]
        if pair is None or axis not in (-1, node.args[0].tensor.rank - 1) or index not in (0, 1, -1, -2):
            return None
        part = pair.im if index in (1, -1) else pair.re
        return part if isinstance(part, Value) else None

    def _output(self, output: Output) -> Output:
        value = output.value
        if not isinstance(value, Value):
            return output
        if has_complex_type(value):
            type_ = _part_type(value.tensor)
            value = _ops(self._emit, type_).stack(self._pairs[value.id], type_.shape)
        return msgspec.structs.replace(output, value=self._renamed.get(value.id, value))


def _results(node: Node, emit: Emitter, pairs: Mapping[int, Pair]) -> tuple[Pair | Value | None, ...]:
    """The results of a node on complex numbers, with all their elements."""
    if not has_elements(node):
        return tuple(None if r is None else _nothing(r, emit) for r in node.results)
    rule = RULES.get(node.op)
    if rule is None:
        raise Declined(f"{node.op} has no ONNX lowering for complex numbers")
    call = ComplexCall(node, emit, pairs)
    found = rule(call)
    made = found if isinstance(found, tuple) and not isinstance(found, Pair) else (found,)
    return tuple(None if r is None else _whole(call.ops, r, m) for r, m in zip(node.results, made, strict=True))


def _whole(ops: Ops, result: Value, made: object) -> Pair | Value:
    if isinstance(made, Pair):
        return Pair(*(ops.whole(part, result.tensor.shape) for part in made))
    assert isinstance(made, Value), "a rule leaves out a result that is used"
    return ops.whole(made, result.tensor.shape)


def _nothing(result: Value, emit: Emitter) -> Pair | Value:
    """A result of no elements."""
    type_ = _part_type(result.tensor)
    nothing = _ops(emit, type_).full(type_.shape, 0)
    return Pair(nothing, nothing) if has_complex_type(result) else nothing


def _part_type(type_: TensorType) -> TensorType:
    """The type of each part, or of what is real already."""
    return TensorType(REAL.get(type_.dtype, type_.dtype), type_.shape, None, type_.device)


def _ops(emit: Emitter, type_: TensorType) -> Ops:
    return Ops(emit, type_.dtype, type_.device)
