"""Ops that move elements and compute nothing: reshapes, permutations, slices, joins, padding."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim, add, mul, product
from fairlead.ir.infer._promotion import complex_of, real_of, result_dtype
from fairlead.ir.infer._rule import Dims, Number, Results, Rule, require
from fairlead.ir.infer._sizes import (
    axes_of,
    axis_of,
    ceildiv,
    floordiv,
    greatest,
    least,
    like,
    minus,
    reduced,
    replaced,
    same,
    with_shape,
)


def view(self: TensorType, size: Dims) -> Results:
    """The same elements in another shape; -1 stands for what is left."""
    total = product(self.shape)
    if -1 in size:
        require(size.count(-1) == 1, "more than one size is left open")
        known = product(d for d in size if d != -1)
        size = replaced(size, size.index(-1), floordiv(total, known))
    same(total, product(size), f"the numbers of elements of {list(self.shape)} and {list(size)}")
    return with_shape(self, size)


def view_dtype(self: TensorType, dtype: DType) -> Results:
    """The same bytes as another dtype: the last dimension shrinks or grows."""
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return like(self, dtype)
    require(self.rank > 0, f"a number of {old} bytes is not one of {new}")
    last = floordiv(mul(self.shape[-1], old), new)
    same(mul(self.shape[-1], old), mul(last, new), "the numbers of bytes")
    return with_shape(self, (*self.shape[:-1], last), dtype)


def permute(self: TensorType, dims: tuple[int, ...]) -> Results:
    """Each dimension in another place."""
    order = axes_of(dims, self.rank)
    require(len(order) == self.rank, f"{len(order)} dimensions are listed, of {self.rank}")
    return with_shape(self, (self.shape[d] for d in order))


def expand(self: TensorType, size: Dims, implicit: bool) -> Results:
    """Dimensions of size one, and new ones in front, take any size; -1 keeps one."""
    new = len(size) - self.rank
    require(new >= 0, f"{self.rank} dimensions do not go into {len(size)}")
    old = (1,) * new + self.shape
    pairs = tuple(zip(old, size, strict=True))
    require(
        all(n in (1, -1, m) or m == n or isinstance(n, str) or (isinstance(m, str) or m == 1) for m, n in pairs),
        f"{list(self.shape)} does not expand to {list(size)}",
    )
    return with_shape(self, (m if n == -1 else n for m, n in pairs))


def unsqueeze(self: TensorType, dim: int) -> Results:
    """A new dimension of size one."""
    axis = axis_of(dim, self.rank + 1)
    return with_shape(self, (*self.shape[:axis], 1, *self.shape[axis:]))


def squeeze(self: TensorType, dim: tuple[int, ...]) -> Results:
    """Without the listed dimensions that have size one."""
    axes = axes_of(dim, self.rank)
    return with_shape(self, (d for i, d in enumerate(self.shape) if i not in axes or d != 1))


def select(self: TensorType, dim: int, index: Dim) -> Results:
    """Without one dimension, at an index of it."""
    require(self.rank > 0, "a number has no dimension to select from")
    axis = axis_of(dim, self.rank)
    size = self.shape[axis]
    if isinstance(index, int) and isinstance(size, int):
        require(-size <= index < size, f"the index {index} is out of the size {size}")
    return with_shape(self, reduced(self.shape, (axis,), False))


def slice_(self: TensorType, dim: int, start: Dim | None, end: Dim | None, step: Dim) -> Results:
    """Every step-th from start to end; bounds count from the end where they are negative, and stop at the size."""
    require(self.rank > 0, "a number has no dimension to slice")
    axis = axis_of(dim, self.rank)
    return with_shape(self, replaced(self.shape, axis, slice_size(self.shape[axis], start, end, step)))


def slice_size(size: Dim, start: Dim | None, end: Dim | None, step: Dim) -> Dim:
    """How many elements a slice has. Bounds that are expressions are taken to be within, in order, not negative."""
    require(not isinstance(step, int) or step > 0, f"the step is {step}")
    first, last = _bound(size, 0 if start is None else start), _bound(size, size if end is None else end)
    length = minus(last, first)
    if not any(isinstance(bound, str) and bound != size for bound in (start, end)):
        length = greatest(length, 0)
    return length if step == 1 else ceildiv(length, step)


def _bound(size: Dim, bound: Dim) -> Dim:
    """A bound within the size."""
    if bound == size or isinstance(bound, str):
        return bound
    return greatest(add(size, bound), 0) if bound < 0 else least(bound, size) if bound < _ENDLESS else size


_ENDLESS = 2**62
"""From here on a bound means the end, as torch has it; no size is as large."""


def split(self: TensorType, split_sizes: Dims, dim: int) -> Results:
    """Parts of these sizes along a dimension."""
    require(self.rank > 0, "a number has no dimension to take apart")
    axis = axis_of(dim, self.rank)
    same(self.shape[axis], add(0, *split_sizes), "the size and the sum of the parts")
    return tuple(with_shape(self, replaced(self.shape, axis, size)) for size in split_sizes)


def unbind(self: TensorType, dim: int) -> Results:
    """One result for each index of a dimension, whose size has to be known."""
    require(self.rank > 0, "a number has no dimension to take apart")
    axis = axis_of(dim, self.rank)
    size = self.shape[axis]
    require(isinstance(size, int), f"how many results there are depends on {size}")
    return (with_shape(self, reduced(self.shape, (axis,), False)),) * int(size)


def diagonal(self: TensorType, offset: int, dim1: int, dim2: int) -> Results:
    """Two dimensions become the last one: as long as the diagonal is."""
    first, second = axes_of((dim1, dim2), self.rank)
    rows, columns = self.shape[first], self.shape[second]
    length = least(rows, minus(columns, offset)) if offset >= 0 else least(add(rows, offset), columns)
    return with_shape(self, (*reduced(self.shape, (first, second), False), greatest(length, 0)))


def as_strided(self: TensorType, size: Dims, stride: Dims, storage_offset: Dim | None) -> Results:
    """The memory of a tensor as a tensor of any shape."""
    require(len(size) == len(stride), f"there are {len(size)} sizes and {len(stride)} strides")
    return with_shape(self, size)


def unfold(self: TensorType, dimension: int, size: Dim, step: Dim) -> Results:
    """Windows along a dimension; the last dimension goes along a window."""
    axis = axis_of(dimension, self.rank)
    length = self.shape[axis] if self.shape else 1
    if isinstance(size, int) and isinstance(length, int):
        require(0 <= size <= length, f"a window of {size} is larger than {length}")
    count = add(floordiv(minus(length, size), step), 1)
    return with_shape(self, (*replaced(self.shape, axis, count), size))


def flip(self: TensorType, dims: tuple[int, ...]) -> Results:
    """The same shape, backwards."""
    axes_of(dims, self.rank)
    return like(self)


def repeat(self: TensorType, repeats: Dims) -> Results:
    """Each dimension so many times, with new ones in front."""
    new = len(repeats) - self.rank
    require(new >= 0, f"{len(repeats)} repeats are too few for {self.rank} dimensions")
    return with_shape(self, (mul(d, n) for d, n in zip((1,) * new + self.shape, repeats, strict=True)))


def cat(tensors: tuple[TensorType, ...], dim: int) -> Results:
    """One after the other along a dimension; the others agree. An empty list of numbers goes with any shape."""
    parts = [t for t in tensors if t.shape != (0,)] or list(tensors[:1])
    require(bool(parts), "there is nothing to join")
    first = parts[0]
    require(first.rank > 0, "numbers cannot be joined")
    axis = axis_of(dim, first.rank)
    rest = [_other_sizes(t, first, axis) for t in parts]
    shape = [same_all((r[i] for r in rest), "the sizes of the parts") for i in range(first.rank)]
    shape[axis] = add(0, *(t.shape[axis] for t in parts))
    return with_shape(first, shape, result_dtype(tensors))


def _other_sizes(part: TensorType, first: TensorType, axis: int) -> Dims:
    require(part.rank == first.rank, f"parts have {first.rank} and {part.rank} dimensions")
    return replaced(part.shape, axis, 0)


def same_all(sizes: Iterable[Dim], what: str) -> Dim:
    """Sizes that have to be equal, as one."""
    known, *rest = sizes
    for size in rest:
        known = same(known, size, what)
    return known


def pad(self: TensorType, pad: Dims, value: Number) -> Results:
    """So much before and after each of the last dimensions, from the last on."""
    return _padded(self, pad)


def pad_edges(self: TensorType, padding: Dims) -> Results:
    """So much before and after each of the last dimensions, from the last on, made of what is there."""
    return _padded(self, padding)


def _padded(x: TensorType, amounts: Dims) -> TensorType:
    require(len(amounts) % 2 == 0 and len(amounts) <= 2 * x.rank, f"{len(amounts)} amounts for {x.rank} dimensions")
    shape = list(x.shape)
    for i in range(len(amounts) // 2):
        axis = x.rank - 1 - i
        shape[axis] = add(shape[axis], *amounts[2 * i : 2 * i + 2])
    require(not any(isinstance(d, int) and d < 0 for d in shape), f"nothing is left of {list(x.shape)}")
    return with_shape(x, shape)


def pad_backward(grad_output: TensorType, self: TensorType, padding: Dims) -> Results:
    """A gradient for each element that was padded."""
    return like(self, grad_output.dtype)


def view_as_real(self: TensorType) -> Results:
    """A last dimension of two: the parts."""
    require(self.dtype.is_complex, f"{self.dtype} has no parts")
    return with_shape(self, (*self.shape, 2), real_of(self.dtype))


def view_as_complex(self: TensorType) -> Results:
    """The last dimension, of two, as the parts of a number."""
    require(self.rank > 0, "a number has no two parts")
    same(self.shape[-1], 2, "the last size and two")
    return with_shape(self, self.shape[:-1], complex_of(self.dtype))


def diagonal_scatter(self: TensorType, src: TensorType, offset: int, dim1: int, dim2: int) -> Results:
    """The same shape, with another diagonal."""
    return like(self)


def diagonal_copy(self: TensorType, offset: int, dim1: int, dim2: int) -> Results:
    """What `diagonal` shows."""
    return diagonal(self, offset, dim1, dim2)


def as_strided_scatter(
    self: TensorType, src: TensorType, size: Dims, stride: Dims, storage_offset: Dim | None
) -> Results:
    """The same shape, with other elements in some places."""
    return like(self)


_PADS = [f"{kind}_pad{n}" for kind in ("reflection", "replication") for n in (1, 2, 3)]

RULES: dict[str, Rule] = {
    "aten.view.default": view,
    "aten.view.dtype": view_dtype,
    "aten.permute.default": permute,
    "aten.expand.default": expand,
    "aten.unsqueeze.default": unsqueeze,
    "aten.squeeze.dims": squeeze,
    "aten.select.int": select,
    "aten.slice.Tensor": slice_,
    "aten.split_with_sizes.default": split,
    "aten.unbind.int": unbind,
    "aten.diagonal.default": diagonal,
    "aten.diagonal_copy.default": diagonal_copy,
    "aten.diagonal_scatter.default": diagonal_scatter,
    "aten.as_strided.default": as_strided,
    "aten.as_strided_scatter.default": as_strided_scatter,
    "aten.unfold.default": unfold,
    "aten.flip.default": flip,
    "aten.repeat.default": repeat,
    "aten.cat.default": cat,
    "aten.constant_pad_nd.default": pad,
    **{f"aten.{kind}d.default": pad_edges for kind in _PADS},
    **{f"aten.{kind}d_backward.default": pad_backward for kind in _PADS},
    "aten.view_as_real.default": view_as_real,
    "aten.view_as_complex.default": view_as_complex,
}
