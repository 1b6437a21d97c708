"""The two entrances: `supports` for a node, `lower` for a graph."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.backend import Level, Support
from fairlead.ir import DType, Graph, Node, ScalarType, TensorType, Value, opset
from fairlead_onnx import (  # noqa: F401 - each enters its rules
    _activations,
    _angles,
    _arithmetic,
    _attention,
    _backward,
    _borders,
    _control,
    _convolution,
    _creation,
    _exponentials,
    _indexing,
    _logic,
    _losses,
    _matmul,
    _norms,
    _pooling,
    _quantised,
    _recurrent,
    _reductions,
    _vector_norms,
    _views,
)
from fairlead_onnx._call import Call
from fairlead_onnx._complex import is_complex, on_parts, without_complex
from fairlead_onnx._file import ModelFile
from fairlead_onnx._nodes import has_elements, write
from fairlead_onnx._ranges import in_range
from fairlead_onnx._rules import RULES
from fairlead_onnx._target import Target
from fairlead_onnx._writer import Declined, Ref, Writer, computed

if TYPE_CHECKING:
    import onnx_ir

__all__ = ["Lowered", "lower", "supports"]


@dataclass(frozen=True, slots=True)
class Lowered:
    """An ONNX model of a graph.

    ``inputs`` names, for each input of the graph, the model's input, or None where nothing reads it; ``outputs``
    names the model's output for each output of the graph, and ``check`` the one that says whether every index was in
    range, where the target does not ask. Every input is an input of the model, weights too: bind
    those by reference. Integer inputs are 0-d tensors of 64-bit integers.
    """

    model: onnx_ir.Model
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    check: str | None = None

    def externalize(self, indices: Iterable[int]) -> None:
        """Make these inputs of the graph initializers whose bytes lie outside of the model.

        The runtime must be given their memory by name before it loads the model: there is no file behind them.
        """
        from fairlead_onnx._model import externalize

        externalize(self.model, [name for i in indices if (name := self.inputs[i]) is not None])

    def file(self) -> ModelFile:
        """The model as the bytes of an ONNX file, with the names that lead from the graph into it."""
        import onnx_ir

        data: bytes = onnx_ir.serde.serialize_model(self.model).SerializeToString()
        return ModelFile(data, self.inputs, self.outputs, self.check)


def supports(node: Node, *, target: Target) -> Support:
    """Whether the rules can write this node exactly for a runtime. A pure function of its arguments."""
    if node.op in target.declined:
        return Support.no(target.declined[node.op])
    if is_complex(node):
        return _supports_on_parts(node, target)
    rule = RULES.get(node.op)
    if rule is None:
        return Support.no(f"{node.op} has no ONNX lowering", Level.PLANNED)
    reason = _miscounted(node) or _unusable_type(node, target)
    if reason is not None:
        return Support.no(reason)
    if not has_elements(node):
        return Support.yes()
    values = {v.id: Ref(f"v{v.id}", _computed(v)) for v in node.operands()}
    try:
        rule(Call(node, Writer(target, lambda name: Ref(name, DType.i64)), values))
    except Declined as declined:
        return Support.no(str(declined))
    return Support.yes()


def _supports_on_parts(node: Node, target: Target) -> Support:
    """Whether the real nodes that stand for one on complex numbers are supported."""
    if (reason := _miscounted(node)) is not None:
        return Support.no(reason)
    try:
        nodes = on_parts(node)
    except Declined as declined:
        return Support.no(str(declined))
    answers = (supports(part, target=target) for part in nodes)
    return next((answer for answer in answers if not answer.accepted), Support.yes())


def _miscounted(node: Node) -> str | None:
    count = _parameters(node.op)
    return None if count in (None, len(node.args)) else f"{node.op} with {len(node.args)} arguments, not {count}"


@functools.cache
def _parameters(op: str) -> int | None:
    """How many arguments a node of the op takes, not counting regions; None for an op that is not in the opset."""
    spec = opset.spec(op)
    if spec is None:
        return None
    return sum(str(p.type) != "Graph" for p in opset.signature(spec.signature).parameters)


def lower(graph: Graph, *, target: Target, constants: Iterable[int] = ()) -> Lowered:
    """Write a graph whose nodes `supports` accepted. Its outputs have to be distinct values that nodes compute.

    Of inputs that are ``constants`` the runtime computes what it can once: what is quicker then, is written so.

    Complex inputs and outputs are real ones of the model, with one more dimension, of 2: `RealForm` hands them over.
    """
    from fairlead_onnx._model import build

    graph = without_complex(graph)
    sources = {s.name: s.source for s in graph.symbols}
    names = [f"in{i}" for i in range(len(graph.inputs))]
    values: dict[int, Ref] = {}

    def symbol(name: str) -> Ref:
        index, dim = sources[name]
        if dim is None:
            return writer.op("Reshape", Ref(names[index], DType.i64), writer.ints(1))
        return writer.op("Shape", Ref(names[index], DType.i64), dtype=DType.i64, start=dim, end=dim + 1)

    writer = Writer(target, symbol)
    writer.fixed = frozenset(names[i] for i in constants)
    for name, given in zip(names, graph.inputs, strict=True):
        stored = Ref(name, _stored(given.value))
        values[given.value.id] = writer.widen(stored)
    for node in graph.nodes:
        write(node, writer, values)
    outputs = _outputs(writer, [(v.tensor.dtype, values[v.id]) for v in _results(graph)])
    held = in_range(writer)
    return build(graph, writer, names, outputs, None if held is None else writer.rename(held, "in_range"))


def _outputs(writer: Writer, results: Sequence[tuple[DType, Ref]]) -> tuple[Ref, ...]:
    """A tensor of its own for each output, in the element type that it is stored in.

    What a step makes is one already: another name would be a copy, where other steps read the tensor too.
    """
    outputs: dict[str, Ref] = {}
    for index, (dtype, result) in enumerate(results):
        ref = writer.cast(result, dtype)
        if writer.producer(ref) is None or ref.name in outputs:
            ref = writer.rename(ref, f"out{index}")
        outputs[ref.name] = ref
    return tuple(outputs.values())


def _results(graph: Graph) -> Iterator[Value]:
    for output in graph.outputs:
        assert isinstance(output.value, Value), "the outputs of a Part are tensors"
        yield output.value


def _stored(value: Value) -> DType:
    return value.type.dtype if isinstance(value.type, TensorType) else DType.i64


def _computed(value: Value) -> DType:
    return DType.i64 if isinstance(value.type, ScalarType) else computed(value.type.dtype)


def _unusable_type(node: Node, target: Target) -> str | None:
    taken = target.dtypes | target.readable if node.op == "aten._to_copy.default" else target.dtypes
    results = ((r, target.dtypes) for r in node.results if r is not None)
    for value, dtypes in (*((v, taken) for v in node.operands()), *results):
        if isinstance(value.type, TensorType) and value.type.dtype not in dtypes:
            return f"{target.name} does not compute in {value.type.dtype}"
    return None
