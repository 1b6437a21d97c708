"""Random numbers: which nodes draw them, and dropout as a draw and a product."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec

from fairlead.ir import Argument, DType, Graph, Node, TensorType, Token, Value, dims
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._nodes import shape_argument
from fairlead.passes._rewrite import Emitter, Replacement, Rule, rewrite

_RANDOM = frozenset(
    [
        "bernoulli",
        "binomial",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "native_dropout",
        "normal",
        "normal_functional",
        "poisson",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "random",
        "randperm",
        "rrelu_with_noise",
        "rrelu_with_noise_functional",
        "uniform",
        "_sample_dirichlet",
        "_standard_gamma",
    ]
)


def draws_random_numbers(op: str) -> bool:
    """Whether an op's result depends on the generator's state."""
    namespace, _, rest = op.partition(".")
    return namespace in ("aten", "nn", "prims") and rest.partition(".")[0] in _RANDOM


_ATTENTION_DROPOUT = {
    "aten._scaled_dot_product_flash_attention.default": 3,
    "aten._scaled_dot_product_efficient_attention.default": 5,
    "aten._scaled_dot_product_cudnn_attention.default": 5,
}
"""Kernels of CUDA that drop within, and which argument says how much."""


def draws(node: Node) -> bool:
    """Whether a node's results depend on the generator's state, or on drawing in one of its regions."""
    if node.op in _ATTENTION_DROPOUT:
        return node.args[_ATTENTION_DROPOUT[node.op]] != 0.0
    return draws_random_numbers(node.op) or any(draws(n) for region in node.regions for n in region.nodes)


def split_dropout(graph: Graph) -> Graph:
    """The graph with each dropout as a mask that torch draws, and two products.

    Before: ``aten.native_dropout.default``. After: ``nn.bernoulli.default(size, p, dtype, device)``, whose numbers
    equal those of eager's dropout under the same seed, because both fill a mask with ``bernoulli_(1 - p)``. A dropout
    on another device than the CPU stays, and is drawn whole: torch has a kernel there that draws otherwise. Regions
    stay as they are: control flow that draws is run by torch as a whole.
    """
    return remove_dead_nodes(rewrite(graph, _dropout))


def _dropout(node: Node, emit: Emitter) -> Replacement | None:
    if node.op != "aten.native_dropout.default":
        return None
    x, p, train = node.args
    if not isinstance(x, Value) or not isinstance(p, int | float) or train is False or x.tensor.device != "cpu":
        return None
    type_ = msgspec.structs.replace(x.tensor, strides=None)
    mask = _mask(x.tensor, 1.0 - p, emit)
    kept = emit("aten.mul.Tensor", (x, mask), type_)
    scale = 0.0 if p == 1 else _rounded(1.0 / (1.0 - p), type_.dtype)
    return emit("aten.mul.Tensor", (kept, scale), type_), mask


def _mask(like: TensorType, p: float, emit: Emitter) -> Value:
    rest = (p, Token("dtype", "bool"), Token("device", like.device))
    return drawn("nn.bernoulli.default", rest, msgspec.structs.replace(like, dtype=DType.bool), emit)


def drawn(
    op: str, rest: tuple[Argument, ...], like: TensorType, emit: Emitter, *, first: tuple[Argument, ...] = ()
) -> Value:
    """Random numbers by an op that takes ``first``, a shape and ``rest``, drawn as ``like`` lies in memory.

    That is the order in which eager fills a tensor like another.
    """
    order = _memory_order(like)
    shape = tuple(like.shape[axis] for axis in order)
    numbers = emit(op, (*first, shape_argument(shape), *rest), TensorType(like.dtype, shape, None, like.device))
    if order == tuple(range(like.rank)):
        return numbers
    back = tuple(map(order.index, range(like.rank)))
    return emit("aten.permute.default", (numbers, back), like)


def _like(op: str) -> Rule:
    def rule(node: Node, emit: Emitter) -> Replacement:
        return (drawn(op, _factory(node.result.tensor), node.result.tensor, emit),)

    return rule


def _integers_like(node: Node, emit: Emitter) -> Replacement:
    """``randint_like``, with or without a lower bound, as ``randint.low``, which has one."""
    bounds = node.args[1:3] if node.op.endswith("low_dtype") else (0, node.args[1])
    return (drawn("aten.randint.low", _factory(node.result.tensor), node.result.tensor, emit, first=bounds),)


def _integers(node: Node, emit: Emitter) -> Replacement:
    return (emit("aten.randint.low", (0, *node.args), node.result.type),)


def _factory(t: TensorType) -> tuple[Argument, ...]:
    return Token("dtype", t.dtype), Token("layout", "strided"), Token("device", t.device), False


def _memory_order(t: TensorType) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost; as they are where memory has gaps."""
    left = list(range(t.rank))
    order: list[int] = []
    step: dims.Dim = 1
    while left and t.strides is not None:
        axis = next((i for i in reversed(left) if t.shape[i] == 1 or t.strides[i] == step), None)
        if axis is None:
            break
        left.remove(axis)
        order.insert(0, axis)
        step = dims.mul(step, t.shape[axis])
    return tuple(range(t.rank)) if left else tuple(order)


def _rounded(number: float, dtype: DType) -> float:
    """The number as the dtype holds it: eager scales its mask before it multiplies."""
    match dtype:
        case DType.f16:
            return float(struct.unpack("e", struct.pack("e", number))[0])
        case DType.bf16:
            (bits,) = struct.unpack("I", struct.pack("f", number))
            bits += 0x7FFF + (bits >> 16 & 1)
            return float(struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0])
    return number


RANDOM_RULES: Mapping[str, Rule] = {
    "aten.rand_like.default": _like("aten.rand.default"),
    "aten.randn_like.default": _like("aten.randn.default"),
    "aten.randint.default": _integers,
    "aten.randint_like.default": _integers_like,
    "aten.randint_like.low_dtype": _integers_like,
}
"""Draws under fewer names, from the shape that they fill."""
