"""Products of matrices, attention and recurrence."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim, mul
from fairlead.ir.infer._rule import Number, Results, Rule, require
from fairlead.ir.infer._sizes import (
    Shape,
    axes_of,
    broadcast,
    floordiv,
    like,
    minus,
    reduced,
    same,
    same_shape,
    with_shape,
)

_INNER = "the inner sizes"


def _product(a: TensorType, b: TensorType, rank: int) -> Shape:
    require(a.rank == b.rank == rank, f"the operands have {a.rank} and {b.rank} dimensions, not {rank}")
    same(a.shape[-1], b.shape[-2], _INNER)
    lead = same_shape(a.shape[:-2], b.shape[:-2], "the batches")
    return (*lead, a.shape[-2], b.shape[-1])


def _one_dtype(a: TensorType, *others: TensorType) -> DType:
    for other in others:
        require(a.dtype == other.dtype, f"the operands are {a.dtype} and {other.dtype}")
    return a.dtype


def mm(self: TensorType, mat2: TensorType) -> Results:
    """(m, k) by (k, n) is (m, n)."""
    return with_shape(self, _product(self, mat2, 2), _one_dtype(self, mat2))


def bmm(self: TensorType, mat2: TensorType) -> Results:
    """(b, m, k) by (b, k, n) is (b, m, n)."""
    return with_shape(self, _product(self, mat2, 3), _one_dtype(self, mat2))


def addmm(self: TensorType, mat1: TensorType, mat2: TensorType, beta: Number, alpha: Number) -> Results:
    """A product and what is added, which broadcasts to it."""
    shape = _product(mat1, mat2, 2)
    require(broadcast(self.shape, shape) == shape, f"{list(self.shape)} does not broadcast to {list(shape)}")
    return with_shape(mat1, shape, _one_dtype(mat1, mat2, self))


def addbmm(self: TensorType, batch1: TensorType, batch2: TensorType, beta: Number, alpha: Number) -> Results:
    """The sum of products and what is added."""
    return with_shape(batch1, _product(batch1, batch2, 3)[1:], _one_dtype(batch1, batch2, self))


def addmv(self: TensorType, mat: TensorType, vec: TensorType, beta: Number, alpha: Number) -> Results:
    """A matrix by a vector, and what is added."""
    require((mat.rank, vec.rank) == (2, 1), f"the operands have {mat.rank} and {vec.rank} dimensions, not 2 and 1")
    same(mat.shape[1], vec.shape[0], _INNER)
    return with_shape(mat, mat.shape[:1], _one_dtype(mat, vec, self))


def linear(input: TensorType, weight: TensorType, bias: TensorType | None) -> Results:  # noqa: A002 - ATen's name
    """(..., k) by the transpose of (n, k) is (..., n)."""
    require(input.rank > 0 and weight.rank == 2, f"operands have {input.rank} and {weight.rank} dimensions")
    same(input.shape[-1], weight.shape[-1], _INNER)
    if bias is not None:
        same(bias.shape[-1] if bias.shape else 1, weight.shape[0], "the sizes of bias and result")
    return with_shape(input, (*input.shape[:-1], weight.shape[0]), _one_dtype(input, weight))


def int_mm(self: TensorType, mat2: TensorType) -> Results:
    """Bytes multiply in int32."""
    return with_shape(self, _product(self, mat2, 2), DType.i32)


def scaled_mm(
    self: TensorType,
    mat2: TensorType,
    scale_a: TensorType,
    scale_b: TensorType,
    bias: TensorType | None,
    scale_result: TensorType | None,
    out_dtype: DType | None,
    use_fast_accum: bool,
) -> Results:
    """A product of 8-bit floating matrices, each with a scale."""
    return with_shape(self, _product(self, mat2, 2), out_dtype or self.dtype)


def attention(
    query: TensorType,
    key: TensorType,
    value: TensorType,
    attn_mask: TensorType | None,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> Results:
    """The output, and for each query the logarithm of the sum of its weights, in float32 at least."""
    _one_dtype(query, key, value)
    require(query.rank == key.rank == value.rank == 4, "operands have not (batch, heads, rows, size) dimensions")
    same(query.shape[-1], key.shape[-1], "the sizes of query and key")
    same(key.shape[-2], value.shape[-2], "the numbers of keys and values")
    sums = with_shape(query, query.shape[:-1], accumulated(query.dtype))
    return with_shape(query, (*query.shape[:-1], value.shape[-1])), sums


def accumulated(dtype: DType) -> DType:
    """The dtype in which kernels add up: float32 for those with fewer bits."""
    return DType.f32 if dtype in (DType.f16, DType.bf16) else dtype


def attention_backward(
    grad_out: TensorType,
    query: TensorType,
    key: TensorType,
    value: TensorType,
    out: TensorType,
    logsumexp: TensorType,
    attn_mask: TensorType | None,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> Results:
    """A gradient for query, key and value."""
    same_shape(grad_out.shape, out.shape, "the shapes of the output and its gradient")
    return like(query), like(key), like(value)


def lstm(
    input: TensorType,  # noqa: A002 - ATen's name
    hx: TensorType,
    cx: TensorType,
    weight_ih: TensorType,
    weight_hh: TensorType,
    bias_ih: TensorType | None,
    bias_hh: TensorType | None,
    reverse: bool,
) -> Results:
    """The state after each step, and the last two states."""
    require(input.rank == 3, f"the input has {input.rank} dimensions, not (steps, batch, size)")
    require(weight_ih.rank == weight_hh.rank == 2, "the weights are no matrices")
    require((bias_ih is None) == (bias_hh is None), "there is one bias of two")
    hidden, gates = weight_hh.shape[1], weight_hh.shape[0]
    same(gates, mul(4, hidden), "the rows of weight_hh and four times the hidden size")
    same_shape(weight_ih.shape, (gates, input.shape[2]), "the shapes of weight_ih and what the input asks for")
    biases = [b for b in (bias_ih, bias_hh) if b is not None]
    for bias in biases:
        same_shape(bias.shape, (gates,), "the shape of a bias and the gates")
    for state in (hx, cx):
        same_shape(state.shape, (1, input.shape[1], hidden), "the shape of a state and (1, batch, hidden)")
    _one_dtype(input, hx, cx, weight_ih, weight_hh, *biases)
    return with_shape(input, (*input.shape[:2], hidden)), with_shape(hx, hx.shape), with_shape(cx, cx.shape)


def _points(x1: TensorType, x2: TensorType) -> tuple[Shape, Dim, Dim]:
    require(x1.rank >= 2 and x2.rank >= 2, "operands are no lists of points")
    same(x1.shape[-1], x2.shape[-1], "the sizes of points")
    return broadcast(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-2]


def cdist(x1: TensorType, x2: TensorType, p: float, compute_mode: int | None) -> Results:
    """A distance for each pair of points of two lists."""
    lead, rows, columns = _points(x1, x2)
    return with_shape(x1, (*lead, rows, columns))


def cdist_backward(grad: TensorType, x1: TensorType, x2: TensorType, p: float, cdist: TensorType) -> Results:
    """A gradient for each point of the first list, of every batch; where there are none, of its own batches."""
    lead, rows, columns = _points(x1, x2)
    if 0 in (*lead, rows, columns, x1.shape[-1]):
        return like(x1)
    return with_shape(x1, (*lead, rows, x1.shape[-1]))


def pdist(self: TensorType, p: float) -> Results:
    """A distance for each pair of points of one list."""
    require(self.rank == 2, "the operand is no list of points")
    count = self.shape[0]
    pairs = floordiv(mul(count, minus(count, 1)), 2)
    return with_shape(self, (pairs,))


def pdist_backward(grad: TensorType, self: TensorType, p: float, pdist: TensorType) -> Results:
    """A gradient for each point."""
    return like(self)


def trilinear(
    i1: TensorType,
    i2: TensorType,
    i3: TensorType,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
    unroll_dim: int,
) -> Results:
    """The product of three tensors, with new dimensions in each, summed over some."""
    shapes = [_expanded(x.shape, e) for x, e in ((i1, expand1), (i2, expand2), (i3, expand3))]
    shape = broadcast(*shapes)
    return with_shape(i1, reduced(shape, axes_of(sumdim, len(shape)), False), _one_dtype(i1, i2, i3))


def _expanded(shape: Shape, new: tuple[int, ...]) -> Shape:
    rank = len(shape) + len(new)
    places = axes_of(new, rank)
    rest = iter(shape)
    return tuple(1 if i in places else next(rest) for i in range(rank))


RULES: dict[str, Rule] = {
    "aten.mm.default": mm,
    "aten.bmm.default": bmm,
    "aten.addmm.default": addmm,
    "aten.addbmm.default": addbmm,
    "aten.addmv.default": addmv,
    "aten.linear.default": linear,
    "aten._int_mm.default": int_mm,
    "aten._scaled_mm.default": scaled_mm,
    "aten._cdist_forward.default": cdist,
    "aten._cdist_backward.default": cdist_backward,
    "aten._pdist_forward.default": pdist,
    "aten._pdist_backward.default": pdist_backward,
    "aten._trilinear.default": trilinear,
    "nn.lstm": lstm,
    "nn.scaled_dot_product_attention": attention,
    "nn.scaled_dot_product_attention_backward": attention_backward,
}
