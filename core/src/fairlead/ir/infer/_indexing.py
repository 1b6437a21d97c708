"""Ops that read and write at computed places: index, gather, scatter, embedding."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim, add
from fairlead.ir.infer._rule import Dims, Number, Results, Rule, require
from fairlead.ir.infer._sizes import axis_of, broadcast, like, replaced, with_shape

Indices = tuple[TensorType | None, ...]
_INDEX = (DType.i64, DType.i32)
_MASK = (DType.bool, DType.u8)


def index(self: TensorType, indices: Indices) -> Results:
    """NumPy's advanced indexing: the indices' shape stands where they are, or in front where others are between.

    How many elements a mask selects, only the data tell.
    """
    require(len(indices) <= self.rank, f"{len(indices)} indices for {self.rank} dimensions")
    given = [i for i, t in enumerate(indices) if t is not None]
    require(bool(given), "there is no index")
    if any(t is not None and t.dtype in _MASK for t in indices):
        return None
    shape = broadcast(*(t.shape for t in indices if t is not None))
    kept = [d for i, d in enumerate(self.shape) if i not in given]
    together = given == list(range(given[0], given[-1] + 1))
    at = given[0] if together else 0
    return with_shape(self, (*kept[:at], *shape, *kept[at:]))


def index_put(self: TensorType, indices: Indices, values: TensorType, accumulate: bool) -> Results:
    """The same shape, with other elements in some places."""
    require(self.dtype == values.dtype, f"{values.dtype} is put into {self.dtype}")
    return like(self)


def index_select(self: TensorType, dim: int, index: TensorType) -> Results:
    """The listed places of a dimension."""
    require(index.rank <= 1, f"the index has {index.rank} dimensions")
    axis = axis_of(dim, self.rank)
    return with_shape(self, replaced(self.shape, axis, index.shape[0] if index.shape else 1))


def gather(self: TensorType, dim: int, index: TensorType, sparse_grad: bool) -> Results:
    """An element for each index."""
    axis_of(dim, self.rank)
    empty = 0 in index.shape
    require(empty or max(index.rank, 1) == max(self.rank, 1), f"there are {self.rank} and {index.rank} dimensions")
    return with_shape(self, index.shape)


def scatter(self: TensorType, dim: int, index: TensorType, src: TensorType) -> Results:
    """The same shape, with other elements in some places."""
    return _written(self, dim, src)


def scatter_value(self: TensorType, dim: int, index: TensorType, value: Number) -> Results:
    """The same shape, with other elements in some places."""
    axis_of(dim, self.rank)
    return like(self)


def scatter_combined(self: TensorType, dim: int, index: TensorType, src: TensorType, reduce: str) -> Results:
    """The same shape, with elements combined in some places."""
    return _written(self, dim, src)


def scatter_reduce(
    self: TensorType,
    dim: int,
    index: TensorType,
    src: TensorType,
    reduce: str,
    include_self: bool,
) -> Results:
    """The same shape, with elements combined in some places."""
    return _written(self, dim, src)


def index_reduce(
    self: TensorType,
    dim: int,
    index: TensorType,
    source: TensorType,
    reduce: str,
    include_self: bool,
) -> Results:
    """The same shape, with elements combined in some places."""
    return _written(self, dim, source)


def _written(x: TensorType, dim: int, source: TensorType) -> TensorType:
    axis_of(dim, x.rank)
    require(x.dtype == source.dtype, f"{source.dtype} is written to {x.dtype}")
    return like(x)


def put(self: TensorType, index: TensorType, source: TensorType, accumulate: bool) -> Results:
    """The same shape, with other elements in some places."""
    require(self.dtype == source.dtype, f"{source.dtype} is put into {self.dtype}")
    return like(self)


def masked_scatter(self: TensorType, mask: TensorType, source: TensorType) -> Results:
    """The shape that operand and mask broadcast to, with other elements in some places."""
    return with_shape(self, broadcast(self.shape, mask.shape))


def masked_scatter_backward(grad_output: TensorType, mask: TensorType, sizes: Dims) -> Results:
    """A gradient for each element of the source."""
    return with_shape(grad_output, sizes)


def masked_select(self: TensorType, mask: TensorType) -> Results:
    """How many are selected, only the data tell."""
    return None


def nonzero(self: TensorType) -> Results:
    """How many are not zero, only the data tell."""
    return None


def nonzero_static(self: TensorType, size: Dim, fill_value: int) -> Results:
    """The places of as many as asked for."""
    return with_shape(self, (size, self.rank), DType.i64)


def select_scatter(self: TensorType, src: TensorType, dim: int, index: Dim) -> Results:
    """The same shape, with other elements in one place of a dimension."""
    axis_of(dim, self.rank)
    return like(self)


def slice_scatter(
    self: TensorType, src: TensorType, dim: int, start: Dim | None, end: Dim | None, step: Dim
) -> Results:
    """The same shape, with other elements in some places of a dimension."""
    axis_of(dim, self.rank)
    return like(self)


def embedding(
    weight: TensorType, indices: TensorType, padding_idx: Dim, scale_grad_by_freq: bool, sparse: bool
) -> Results:
    """A row of the table for each index."""
    require(weight.rank == 2, f"the table has {weight.rank} dimensions")
    require(indices.dtype in _INDEX, f"the indices are {indices.dtype}")
    return with_shape(weight, (*indices.shape, weight.shape[1]))


def embedding_backward(
    grad_output: TensorType, indices: TensorType, num_weights: Dim, padding_idx: Dim, scale_grad_by_freq: bool
) -> Results:
    """A gradient for each row of the table."""
    require(grad_output.rank > 0, "the gradient is a number")
    return with_shape(grad_output, (num_weights, grad_output.shape[-1]))


def embedding_renorm(self: TensorType, indices: TensorType, max_norm: float, norm_type: float) -> Results:
    """The table, with the rows that indices name no longer than asked for."""
    return like(self)


_SUM, _MEAN, _MAX = range(3)


def embedding_bag(
    weight: TensorType,
    indices: TensorType,
    offsets: TensorType,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: TensorType | None,
    include_last_offset: bool,
    padding_idx: int,
) -> Results:
    """A row for each bag of indices; the bag of each index, the size of each bag and the rows of its maxima.

    The CPU leaves the bags of indices out where it adds up rows as they lie in memory, which depends on strides
    (``aten/src/ATen/native/EmbeddingBag.cpp``).
    """
    require(weight.rank == 2 and offsets.rank == 1, "there are no rows, or no list of offsets")
    bags = add(offsets.shape[0], -1) if include_last_offset else offsets.shape[0]
    rows = with_shape(weight, (bags, weight.shape[1]))
    if weight.device != "cpu":
        each = with_shape(indices, indices.shape[:1])
        maxima = with_shape(indices, (bags, weight.shape[1]) if mode == _MAX else (0,))
        return rows, each, with_shape(indices, offsets.shape), maxima
    rows_dense = weight.strides is None or weight.strides[1] == 1
    scales_dense = per_sample_weights is None or per_sample_weights.strides in (None, (1,))
    fast = weight.dtype in (DType.f32, DType.f16) and rows_dense and scales_dense and padding_idx < 0
    skipped = mode == _SUM and fast
    each = with_shape(offsets, (0,) if skipped else indices.shape[:1])
    maxima = with_shape(offsets, (bags, weight.shape[1]) if mode == _MAX else (bags,))
    return rows, each, with_shape(offsets, (bags,)), maxima


def embedding_bag_forward(
    weight: TensorType,
    indices: TensorType,
    offsets: TensorType,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: TensorType | None,
    include_last_offset: bool,
    padding_idx: int,
) -> Results:
    """The same, where no backward follows: the sizes of bags count all offsets."""
    rows, each, _, maxima = embedding_bag(  # type: ignore[misc]  # four types
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )
    return rows, each, with_shape(offsets, offsets.shape), maxima


def embedding_bag_dense_backward(
    grad: TensorType,
    indices: TensorType,
    offset2bag: TensorType,
    bag_size: TensorType,
    maximum_indices: TensorType,
    num_weights: Dim,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: TensorType | None,
    padding_idx: int,
) -> Results:
    """A gradient for each row of the table."""
    require(grad.rank == 2, f"the gradient has {grad.rank} dimensions")
    return with_shape(grad, (num_weights, grad.shape[1]))


def embedding_bag_backward(
    grad: TensorType,
    indices: TensorType,
    offsets: TensorType,
    offset2bag: TensorType,
    bag_size: TensorType,
    maximum_indices: TensorType,
    num_weights: Dim,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: TensorType | None,
    padding_idx: int,
) -> Results:
    """A gradient for each row of the table."""
    require(grad.rank == 2, f"the gradient has {grad.rank} dimensions")
    return with_shape(grad, (num_weights, grad.shape[1]))


def embedding_bag_scales_backward(
    grad: TensorType,
    weight: TensorType,
    indices: TensorType,
    offsets: TensorType,
    offset2bag: TensorType,
    mode: int,
    padding_idx: int,
) -> Results:
    """A gradient for each scale."""
    return with_shape(grad, indices.shape)


RULES: dict[str, Rule] = {
    "aten.index.Tensor": index,
    "aten.index_put.default": index_put,
    "aten.index_select.default": index_select,
    "aten.gather.default": gather,
    "aten.scatter.src": scatter,
    "aten.scatter.value": scatter_value,
    "aten.scatter_add.default": scatter,
    "aten.scatter.reduce": scatter_combined,
    "aten.scatter_reduce.two": scatter_reduce,
    "aten.index_reduce.default": index_reduce,
    "aten.put.default": put,
    "aten.masked_scatter.default": masked_scatter,
    "aten.masked_scatter_backward.default": masked_scatter_backward,
    "aten.masked_select.default": masked_select,
    "aten.nonzero.default": nonzero,
    "aten.nonzero_static.default": nonzero_static,
    "aten.select_scatter.default": select_scatter,
    "aten.slice_scatter.default": slice_scatter,
    "aten.embedding.default": embedding,
    "aten.embedding_dense_backward.default": embedding_backward,
    "aten.embedding_renorm.default": embedding_renorm,
    "aten._embedding_bag.default": embedding_bag,
    "aten._embedding_bag_forward_only.default": embedding_bag_forward,
    "aten._embedding_bag_dense_backward.default": embedding_bag_dense_backward,
    "aten._embedding_bag_backward.default": embedding_bag_backward,
    "aten._embedding_bag_per_sample_weights_backward.default": embedding_bag_scales_backward,
}
