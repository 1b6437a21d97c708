"""Work out what is known before the graph runs: tensors of one number, and what only constants determine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from fairlead.ir import Argument, DType, Graph, Node, TensorType, Token, Value
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._hoist import hoist
from fairlead.passes._memory import is_view, seen_by_outputs
from fairlead.passes._nodes import logical_same, operand, shape_argument
from fairlead.passes._numbers import MAKE_BOOLS, Number, computed, stored
from fairlead.passes._regions import in_regions
from fairlead.passes._rewrite import Emitter, Replacement, rewrite

T = TypeVar("T")

Evaluate: TypeAlias = "Callable[[Graph, Sequence[T]], Sequence[T]]"
"""Runs a graph on tensors of whatever kind the caller has; `fairlead.interpret.run` is one."""

_UNIFORM_VIEWS = frozenset(
    {
        "aten.view.default",
        "aten.permute.default",
        "aten.expand.default",
        "aten.unsqueeze.default",
        "aten.squeeze.dims",
        "aten.select.int",
        "aten.slice.Tensor",
        "aten.clone.default",
        "aten.flip.default",
    }
)
"""What shows a tensor of one number in another shape."""

_NEUTRAL: Mapping[str, Callable[[Number, bool], bool]] = {
    "aten.mul.Tensor": lambda n, exact: n == 1,
    "aten.div.Tensor": lambda n, exact: n == 1,
    "aten.sub.Tensor": lambda n, exact: n == 0 and (exact or str(n) != "-0.0"),
    "aten.add.Tensor": lambda n, exact: n == 0 and (exact or str(n) == "-0.0"),
}
"""For which second operand an op changes no bit of the first; ``exact`` where that is an integer."""


def fold_constants(graph: Graph) -> Graph:
    """The graph with what is known of tensors of one number worked out, in regions too.

    Before: a canonical graph. After: no view of an ``aten.full.default`` but where an output is one, no arithmetic,
    comparison, conversion or choice (``aten.where.self``) among such tensors and numbers alone, and no product,
    quotient, sum or difference that changes nothing. Only what IEEE 754 rounds in one way is worked out, so that the
    graph computes the same bits as before.
    """
    graph = in_regions(graph, fold_constants)
    return remove_dead_nodes(rewrite(graph, _Fold(graph)))


class Folded(NamedTuple):
    """A graph, and its constants by input index."""

    graph: Graph
    constants: Mapping[int, object]


def fold_tensors(graph: Graph, constants: Mapping[int, T], evaluate: Evaluate[T]) -> Folded:
    """The graph with what only ``constants`` (tensors by input index) determine as more constants.

    Before: any graph. After: as `hoist` leaves it; ``evaluate`` ran what it moved out. The inputs stay where they are,
    read or not, and the new ones come last.
    """
    hoisted = hoist(graph, frozenset(constants))
    if hoisted is None:
        return Folded(graph, dict(constants))
    setup = _of_inputs(hoisted.setup, sorted(constants))
    made = evaluate(setup, [constants[i] for i in sorted(constants)])
    first = len(graph.inputs)
    return Folded(hoisted.main, {**constants, **{first + i: tensor for i, tensor in enumerate(made)}})


def _of_inputs(setup: Graph, kept: Sequence[int]) -> Graph:
    """The graph of these inputs alone. What was hoisted has no symbols and reads no others."""
    return msgspec.structs.replace(setup, inputs=tuple(setup.inputs[i] for i in kept), symbols=())


class _Fold:
    def __init__(self, graph: Graph) -> None:
        self._shown = seen_by_outputs(graph)
        self._known: dict[int, Number] = {}

    def __call__(self, node: Node, emit: Emitter) -> Replacement | None:
        if len(node.results) != 1 or node.results[0] is None or not isinstance(node.results[0].type, TensorType):
            return None
        if node.op == "aten.full.default":
            self._note(node.result, node.args[1])
            return None
        shown = node.result.id in self._shown
        if not shown and (same := self._unchanged(node)) is not None:
            return (same,)
        if shown and is_view(node.op):
            return None
        number = self._worked_out(node)
        if number is None:
            return None
        value = _full(node.result.tensor, number, emit)
        self._note(value, number)
        return (value,)

    def _note(self, value: Value, fill: Argument) -> None:
        if isinstance(fill, int | float):
            number = stored(fill, value.tensor.dtype)
            if number is not None:
                self._known[value.id] = number

    def _number(self, arg: Argument) -> Number | None:
        """What a tensor of one number, or a number in a tensor's place, is."""
        if isinstance(arg, Value):
            return self._known.get(arg.id)
        return arg if isinstance(arg, int | float) else None

    def _worked_out(self, node: Node) -> Number | None:
        if node.op in _UNIFORM_VIEWS:
            return self._number(node.args[0])
        if node.op == "aten._to_copy.default":
            number = self._number(node.args[0])
            return None if number is None else stored(number, node.result.tensor.dtype)
        operands = list(node.operands())
        if not operands or any(v.id not in self._known for v in operands) or not _of_one_dtype(node):
            return None
        return computed(node.op, [self._number(a) for a in node.args], operands[0].tensor.dtype)

    def _unchanged(self, node: Node) -> Value | None:
        """The value that the node gives again."""
        first = node.args[0]
        if node.op == "aten.where.self":
            condition = self._number(first)
            chosen = None if condition is None else node.args[1 if condition else 2]
            return chosen if isinstance(chosen, Value) and chosen.type == node.result.type else None
        if node.op not in _NEUTRAL or not isinstance(first, Value) or not logical_same(node):
            return None
        if node.op in ("aten.add.Tensor", "aten.sub.Tensor") and node.args[2] != 1:
            return None
        number = self._number(node.args[1])
        neutral = number is not None and _NEUTRAL[node.op](number, node.result.tensor.dtype.is_integer)
        return operand(node) if neutral else None


def _of_one_dtype(node: Node) -> bool:
    """Whether the tensors among the arguments have one dtype, which is the result's unless that is a bool of them.

    A number beside a tensor must not raise its dtype, nor be rounded to a half first, which kernels do or do not.
    """
    dtypes = {v.tensor.dtype for v in node.operands()}
    if node.op not in MAKE_BOOLS:
        dtypes.add(node.result.tensor.dtype)
    (dtype, *others) = dtypes
    if others or (any(isinstance(a, float) for a in node.args) and not dtype.is_floating):
        return False
    return dtype not in (DType.f16, DType.bf16) or all(isinstance(a, Value) for a in node.args[:2])


def _full(like: TensorType, number: Number, emit: Emitter) -> Value:
    dtype, layout, device = Token("dtype", like.dtype), Token("layout", "strided"), Token("device", like.device)
    args = (shape_argument(like.shape), number, dtype, layout, device, False)
    return emit("aten.full.default", args, like)
