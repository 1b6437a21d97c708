"""Arithmetic on sizes and shapes that rules share."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim, add, mul, normalize
from fairlead.ir.infer._rule import BrokenRule, require

Shape = tuple[Dim, ...]


def minus(a: Dim, b: Dim) -> Dim:
    """``a - b``."""
    return add(a, mul(-1, b))


def floordiv(a: Dim, b: Dim) -> Dim:
    """``a // b``, rounded down as Python rounds."""
    require(b != 0, "it divides a size by zero")
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return normalize(f"({a})//({b})")


def ceildiv(a: Dim, b: Dim) -> Dim:
    """``a / b`` rounded up, as torch writes it: the quotient of ``a + b - 1``."""
    return floordiv(add(a, b, -1), b)


def least(*dims: Dim) -> Dim:
    """The smallest."""
    return _extremum("min", dims)


def greatest(*dims: Dim) -> Dim:
    """The largest."""
    return _extremum("max", dims)


def _extremum(name: str, dims: tuple[Dim, ...]) -> Dim:
    numbers = [d for d in dims if isinstance(d, int)]
    if len(numbers) == len(dims):
        return min(numbers) if name == "min" else max(numbers)
    return normalize(f"{name}({', '.join(map(str, dims))})")


def with_shape(x: TensorType, shape: Iterable[Dim], dtype: DType | None = None) -> TensorType:
    """A tensor on the device of ``x``, in row-major layout."""
    return TensorType(dtype or x.dtype, tuple(shape), None, x.device)


def like(x: TensorType, dtype: DType | None = None) -> TensorType:
    """A tensor of the shape of ``x``, in row-major layout."""
    return with_shape(x, x.shape, dtype)


def axis_of(dim: int, rank: int) -> int:
    """A dimension counted from the front; a number has one dimension for this purpose, as torch has it."""
    size = max(rank, 1)
    require(-size <= dim < size, f"there is no dimension {dim} in {rank} dimensions")
    return dim % size


def axes_of(dims: Iterable[int], rank: int) -> tuple[int, ...]:
    """Dimensions counted from the front, none of them twice."""
    found = tuple(axis_of(d, rank) for d in dims)
    require(len(set(found)) == len(found), f"a dimension is listed twice in {list(found)}")
    return found


def replaced(shape: Shape, axis: int, size: Dim) -> Shape:
    """The shape with another size in one place; that of a number stays."""
    return (*shape[:axis], size, *shape[axis + 1 :]) if shape else shape


def reduced(shape: Shape, axes: Iterable[int], keepdim: bool) -> Shape:
    """The shape after a reduction over ``axes``."""
    gone = set(axes)
    if keepdim:
        return tuple(1 if i in gone else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in gone)


def same(a: Dim, b: Dim, what: str) -> Dim:
    """Two sizes that have to be equal, as one: the number where one is; unequal numbers break the rule."""
    if isinstance(a, int) and isinstance(b, int):
        require(a == b, f"{what} differ: {a} and {b}")
    return b if isinstance(b, int) else a


def same_shape(a: Shape, b: Shape, what: str) -> Shape:
    """Two shapes that have to be equal, as one."""
    require(len(a) == len(b), f"{what} differ: {list(a)} and {list(b)}")
    return tuple(same(m, n, what) for m, n in zip(a, b, strict=True))


def broadcast(*shapes: Shape) -> Shape:
    """The shape that all broadcast to: from the last dimension on, sizes are equal or one is 1.

    Of two sizes that depend on symbols, and are not written alike, the first is taken: they have to be equal.
    https://pytorch.org/docs/stable/notes/broadcasting.html
    """
    rank = max(map(len, shapes), default=0)
    return tuple(_joined([s[i - rank] for s in shapes if i - rank >= -len(s)], shapes) for i in range(rank))


def _joined(sizes: list[Dim], shapes: tuple[Shape, ...]) -> Dim:
    found: Dim = 1
    for size in sizes:
        if found == 1:
            found = size
        elif size != 1 and size != found:
            if isinstance(size, int) and isinstance(found, int):
                raise BrokenRule(f"the shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast")
            found = size if isinstance(size, int) else found
    return found
