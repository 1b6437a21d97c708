"""Random numbers: which nodes draw them, and dropout as a draw and a product."""

from __future__ import annotations

import msgspec

from fairlead.ir import DType, Graph, Node, Token, Value
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._nodes import shape_argument
from fairlead.passes._rewrite import Emitter, Replacement, rewrite

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
        "randint",
        "randn",
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


def split_dropout(graph: Graph) -> Graph:
    """The graph with each dropout as a mask that torch draws, and two products.

    Before: ``aten.native_dropout.default``. After: ``nn.bernoulli.default(size, p, dtype, device)``, whose numbers
    equal those of eager's dropout under the same seed, because both fill a mask with ``bernoulli_(1 - p)``.
    """
    return remove_dead_nodes(rewrite(graph, _dropout))


def _dropout(node: Node, emit: Emitter) -> Replacement | None:
    if node.op != "aten.native_dropout.default":
        return None
    x, p, train = node.args
    if not isinstance(x, Value) or not isinstance(p, int | float) or train is False:
        return None
    type_ = msgspec.structs.replace(x.tensor, strides=None)
    mask_type = msgspec.structs.replace(type_, dtype=DType.bool)
    size = shape_argument(type_.shape)
    mask = emit(
        "nn.bernoulli.default", (size, 1.0 - p, Token("dtype", "bool"), Token("device", type_.device)), mask_type
    )
    kept = emit("aten.mul.Tensor", (x, mask), type_)
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
    return emit("aten.mul.Tensor", (kept, scale), type_), mask
