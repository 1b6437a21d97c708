"""Which graphs are worth it: those in which packing saves more than the kernels that Inductor would fuse."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

from fairlead.ir import DType, Graph, Kind, Node, Role, TensorType, Value, dims
from fairlead.passes import draws_random_numbers, is_view, multiplications, typical_sizes
from fairlead_ipex._groups import GROUPED
from fairlead_ipex._recurrent import LSTM

__all__ = [
    "can_be_fused",
    "declines",
    "inductor_takes",
    "is_of_stretches",
    "is_of_training",
    "is_worth_fusing",
]

_WEIGHTS = (Role.parameter, Role.buffer, Role.constant)
_CONVOLUTION = "aten.convolution.default"
_BATCH_NORM = "aten._native_batch_norm_legit_no_training.default"
_OPERANDS = {  # where a product has what it multiplies, and its weights
    "aten.linear.default": (0, 1),
    "aten.mm.default": (0, 1),
    "aten.addmm.default": (1, 2),
    _CONVOLUTION: (0, 1),
    **dict.fromkeys(GROUPED, (0, 1)),
    LSTM: (0, 3),
}
_ELEMENT_WISE = frozenset(
    f"aten.{name}"
    for name in (
        *(f"{op}.Tensor" for op in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")),
        *(f"{op}.default" for op in ("neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "erf", "abs", "clamp")),
        *(f"{op}.default" for op in ("_to_copy", "maximum", "minimum", "softplus", "reciprocal")),
        *("where.self", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "cumsum.default", "masked_fill.Scalar"),
        *(f"{op}.default" for op in ("relu", "hardtanh", "hardsigmoid")),
    )
)
"""Ops that Inductor fuses with their neighbours, each a pass through memory here."""

_PASSES_ANYWAY = frozenset(
    f"aten.{name}"
    for name in (
        *(f"{op}.default" for op in ("constant_pad_nd", "cat", "_adaptive_avg_pool2d", "avg_pool2d", "mean")),
        *("mean.dim", "upsample_nearest2d.default", "upsample_bilinear2d.default"),
    )
)
"""Ops of which Inductor makes a pass of its own as well."""

_SAVED_BY_FUSING = 64
"""A pass over one number costs as much as packing saves with so many multiplications."""

_FEW = 100_000
"""So few numbers are made in less time than a call of Inductor's code takes."""

_MANY = 500_000
"""So many numbers that are made beside products take a twentieth of a millisecond: it pays to compile for seconds."""


def declines(graph: Graph) -> str | None:
    """Why a graph is better run by others; None where packing gains."""
    if is_of_training(graph):
        return None if inductor_takes(graph) else "nothing is packed in training, and Inductor does not take all of it"
    known = {i.value.id for i in graph.inputs if i.role in _WEIGHTS}
    work, passes, made = 0.0, 0, 0
    sizes = typical_sizes(graph)
    for node in graph.nodes:
        made += sum(_size(r, sizes) for r in node.results if r is not None and isinstance(r.type, TensorType))
        if all(v.id in known for v in node.operands()):
            known.update(r.id for r in node.results if r is not None)
        elif node.op in _OPERANDS:
            work += _work(node, known, sizes)
        elif node.op in _ELEMENT_WISE:
            passes += _size(node.result, sizes)
    if not work and made > _FEW:
        return "no product with weights of float32 or bfloat16: there is nothing to pack"
    if passes > _FEW and passes * _SAVED_BY_FUSING > work and not can_be_fused(graph):
        return "slower than Inductor here: little to pack beside what it fuses"
    return None


def is_of_training(graph: Graph) -> bool:
    """Whether weights change: a graph is a half of a step of training, or it writes parameters itself."""
    if graph.kind is not Kind.inference:
        return True
    written = (graph.inputs[o.target] for o in graph.outputs if o.role is Role.mutation and o.target is not None)
    return any(item.role is Role.parameter for item in written)


def can_be_fused(graph: Graph) -> bool:
    """Whether Inductor can compile what lies between products here, with what is packed within its code."""
    if graph.symbols or any(o.role is Role.mutation for o in graph.outputs):
        return False
    return inductor_takes(graph)


def inductor_takes(graph: Graph) -> bool:
    """Whether Inductor is ready here, and right about each op of a graph."""
    return _inductor_is_ready() and all(_inductor_takes(node) for node in graph.walk())


def is_of_stretches(graph: Graph) -> bool:
    """Whether a graph is of convolutions in float32 and little that Inductor would fuse. Sizes are numbers.

    Nor does it write or draw anything: it may be called again for what it could not compute.
    """
    from fairlead_ipex._stretches import STRETCHED, is_available

    convolutions = [n for n in graph.nodes if n.op == _CONVOLUTION]
    if not convolutions or graph.symbols or not is_available():
        return False
    if any(o.role is Role.mutation for o in graph.outputs) or any(draws_random_numbers(n.op) for n in graph.walk()):
        return False
    results = {n.result.id for n in convolutions}
    among = {_CONVOLUTION, *STRETCHED, *_PASSES_ANYWAY}
    others = [n for n in graph.nodes if n.op not in among and not _norms(n, results)]
    return all(n.result.tensor.dtype in (DType.f32, DType.bf16) for n in convolutions) and _made(others) < _MANY


def _norms(node: Node, results: set[int]) -> bool:
    """Whether a node is the batch norm of one of these results."""
    return node.op == _BATCH_NORM and any(v.id in results for v in node.operands())


def is_worth_fusing(graph: Graph) -> bool:
    """Whether so much lies between products that it pays to compile it. Sizes are numbers."""
    return _made(graph.nodes) >= _MANY


def _made(nodes: Iterable[Node]) -> int:
    """The numbers that are made beside products."""
    others = (n for n in nodes if n.op not in _OPERANDS and not is_view(n.op))
    results = (r for n in others for r in n.results if r is not None and isinstance(r.type, TensorType))
    return sum(_size(r, {}) for r in results)


@functools.cache
def _inductor_is_ready() -> bool:
    from fairlead_inductor import backend as inductor

    return "cpu" in inductor.probe().devices


def _inductor_takes(node: Node) -> bool:
    from fairlead_inductor import backend as inductor

    return inductor.supports(node).accepted


def _work(node: Node, known: set[int], sizes: dict[str, int]) -> float:
    """The multiplications of a product whose weights are known."""
    x, weight = (node.args[i] for i in _OPERANDS[node.op])
    if not isinstance(x, Value) or not isinstance(weight, Value) or weight.id not in known or x.id in known:
        return 0.0
    return multiplications(node, sizes) if x.tensor.dtype in (DType.f32, DType.bf16) else 0.0


def _size(value: Value, sizes: dict[str, int]) -> int:
    assert isinstance(value.type, TensorType)
    return math.prod(dims.evaluate(d, sizes) for d in value.type.shape)
