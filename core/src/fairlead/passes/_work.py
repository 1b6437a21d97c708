"""What the nodes of a graph come to: numbers that are read and written, and multiplications of products."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from fairlead.ir import DType, Graph, Node, TensorType, Value, dims
from fairlead.passes._memory import is_view

__all__ = ["is_product", "multiplications", "share_of_products", "typical_sizes", "work"]

_PER_NUMBER = 64
"""Reading or writing one number takes as long as so many multiplications of a product."""

_TYPICAL_SIZE = 32
"""What a size is taken for that is known only at the call."""

_GATES = 4


def typical_sizes(graph: Graph) -> dict[str, int]:
    """A size for each of the graph's symbols."""
    return {s.name: max(_TYPICAL_SIZE, s.lo) for s in graph.symbols}


def work(node: Node, sizes: Mapping[str, int]) -> float:
    """How many numbers a node reads and writes, and what its multiplications come to in them; nothing for a view.

    ``sizes``: the values of the graph's symbols.
    """
    if is_view(node.op):
        return 0.0
    results = [r for r in node.results if r is not None]
    numbers = float(sum(_size(v, sizes) for v in (*node.operands(), *results)))
    return numbers + multiplications(node, sizes) / _PER_NUMBER


def multiplications(node: Node, sizes: Mapping[str, int]) -> float:
    """The multiplications of a product of matrices, a convolution, attention or an LSTM; none of any other op.

    ``sizes``: the values of the graph's symbols.
    """
    products = _PRODUCTS.get(node.op)
    return 0.0 if products is None else products(node, sizes)


def is_product(op: str) -> bool:
    """Whether an op multiplies and adds up: a product of matrices, a convolution, attention, an LSTM."""
    return op in _PRODUCTS


def share_of_products(graph: Graph, dtype: DType) -> float:
    """The part of a graph's work, from 0 to 1, that is products of matrices, convolutions and the like of a dtype.

    >>> from fairlead.ir import Builder
    >>> builder = Builder("g", "inference")
    >>> x, w = builder.input("f32[64, 4096]"), builder.input("f32[4096, 4096]")
    >>> builder.output(builder.op("aten.linear.default", x, w, None, to="f32[64, 4096]"))
    >>> share_of_products(builder.graph(), DType.f32), share_of_products(builder.graph(), DType.bf16)
    (1.0, 0.0)
    """
    return share_of(graph, lambda node: is_product(node.op) and _operand(node, 0).tensor.dtype is dtype)


def share_of(graph: Graph, counts: Callable[[Node], bool]) -> float:
    """The part of a graph's work, from 0 to 1, that is that of the nodes that count."""
    sizes = typical_sizes(graph)
    every = [(node, work(node, sizes)) for node in graph.nodes]
    total = sum(amount for _, amount in every)
    return sum(amount for node, amount in every if counts(node)) / total if total else 0.0


def _of_rows(factor: int, *, weighted: bool = False) -> Callable[[Node, Mapping[str, int]], float]:
    """Multiplications of a product of which the argument ``factor`` has one for each number of the result.

    They are in its last dimension, or, where it is ``weighted``, in all but its first.
    """

    def products(node: Node, sizes: Mapping[str, int]) -> float:
        shape = _operand(node, factor).tensor.shape
        made = sum(_size(r, sizes) for r in node.results if r is not None)
        return made * _product(shape[1:] if weighted else shape[-1:], sizes)

    return products


def _gradients(node: Node, sizes: Mapping[str, int]) -> float:
    """Those of a convolution's gradients: as many as its own for each of its images and its weights."""
    made = sum(r is not None for r in node.results[:2])
    return _size(_operand(node, 0), sizes) * _product(_operand(node, 2).tensor.shape[1:], sizes) * made


def _attention(first: int, times: int) -> Callable[[Node, Mapping[str, int]], float]:
    """``times`` products of queries, which are the argument ``first``, and keys."""

    def products(node: Node, sizes: Mapping[str, int]) -> float:
        keys = _operand(node, first + 1).tensor.shape
        return times * _size(_operand(node, first), sizes) * _product(keys[-2:-1], sizes)

    return products


def _lstm(node: Node, sizes: Mapping[str, int]) -> float:
    """Those of each step's input and state with the weights of all gates."""
    data, state = _operand(node, 0).tensor.shape, _operand(node, 1).tensor.shape
    width = _product(state[-1:], sizes)
    return _product(data[:-1], sizes) * _GATES * width * (_product(data[-1:], sizes) + width)


_PRODUCTS: Mapping[str, Callable[[Node, Mapping[str, int]], float]] = {
    "aten.linear.default": _of_rows(1, weighted=True),
    "aten.convolution.default": _of_rows(1, weighted=True),
    "aten.convolution_backward.default": _gradients,
    "aten.mm.default": _of_rows(0),
    "aten.bmm.default": _of_rows(0),
    "aten.addmm.default": _of_rows(1),
    "aten.baddbmm.default": _of_rows(1),
    "aten.mv.default": _of_rows(0),
    "aten.dot.default": _of_rows(0),
    "aten._grouped_mm.default": _of_rows(0),
    "transformers.grouped_mm_fallback.default": _of_rows(0),
    "nn.scaled_dot_product_attention": _attention(0, 2),
    "nn.scaled_dot_product_attention_backward": _attention(1, 5),
    "nn.lstm": _lstm,
}


def _operand(node: Node, index: int) -> Value:
    found = node.args[index]
    assert isinstance(found, Value), "an operand of a product"
    return found


def _size(value: Value, sizes: Mapping[str, int]) -> int:
    return _product(value.type.shape, sizes) if isinstance(value.type, TensorType) else 0


def _product(shape: Sequence[int | str], sizes: Mapping[str, int]) -> int:
    return math.prod(dims.evaluate(d, sizes) for d in shape)
