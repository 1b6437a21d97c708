"""One node of the IR as its rule sees it: operands as ONNX tensors, attributes as Python values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, cast

from fairlead.ir import Dim, DimExpr, DType, Node, ScalarType, TensorType, Value
from fairlead_onnx._writer import Declined, Ref, Writer, computed

__all__ = ["Call", "Result", "Rule", "as_dim", "as_value", "computed_type", "promoted", "wrapped"]


class Call:
    """A node, the writer, and the ONNX tensors of the values that are already written."""

    def __init__(self, node: Node, writer: Writer, values: Mapping[int, Ref]) -> None:
        self.node = node
        self.args = node.args
        self.writer = writer
        self._values = values

    @property
    def out(self) -> TensorType:
        """The type of the first result that is used."""
        return next(r for r in self.node.results if r is not None).tensor

    @property
    def dtype(self) -> DType:
        """The element type in which the first used result is computed."""
        return computed(self.out.dtype)

    def wants(self, index: int) -> bool:
        """Whether somebody uses this result."""
        return index < len(self.node.results) and self.node.results[index] is not None

    def type(self, index: int) -> TensorType:
        """The type of a tensor operand."""
        return as_value(self.args[index], self.node.op).tensor

    def rank(self, index: int) -> int:
        return self.type(index).rank

    def tensor(self, index: int, dtype: DType | None = None) -> Ref:
        """An operand as a tensor, in ``dtype`` or else in the element type that it is computed in."""
        return self.operand(self.args[index], dtype)

    def maybe(self, index: int, dtype: DType | None = None) -> Ref | None:
        """As `tensor`, or None where the operand is none."""
        return None if self.args[index] is None else self.tensor(index, dtype)

    def exact(self, index: int, dtype: DType | None = None) -> Ref:
        """As `tensor`, with halves rounded: for ops that turn a tiny difference into a large one."""
        arg = self.args[index]
        if not (isinstance(arg, Value) and isinstance(arg.type, TensorType)):
            return self.operand(arg, dtype)
        ref = self.writer.rounded(self.operand(arg), arg.type.dtype)
        return ref if dtype is None else self.writer.cast(ref, dtype)

    def operand(self, arg: object, dtype: DType | None = None) -> Ref:
        """A value, number or dimension as a tensor."""
        match arg:
            case Value():
                ref = self._values[arg.id]
                return ref if dtype is None else self.writer.cast(ref, dtype)
            case DimExpr(expr=expr):
                return self.writer.cast(self.writer.scalar(self.writer.dim(expr)), dtype or DType.i64)
            case bool() | int() | float():
                return self.writer.number(_as(arg, dtype), dtype) if dtype else self.writer.number(arg, _natural(arg))
        raise Declined(f"{type(arg).__name__} as an operand of {self.node.op}")

    def axis(self, index: int, of: int = 0) -> int:
        """A dimension attribute, counted from the front; 0 for a 0-d operand."""
        return self._counted(cast(int, self.args[index]), self.rank(of))

    def axes(self, index: int, of: int = 0) -> tuple[int, ...]:
        """A list of dimensions, counted from the front; every dimension where it is none or empty.

        None for a 0-d operand, which torch lets name dimension 0 or -1 of it.
        """
        rank = self.rank(of)
        given = self.args[index]
        dims = (given,) if isinstance(given, int) else cast("tuple[int, ...]", given or ())
        return tuple(sorted(self._counted(d, rank) for d in dims)) if dims and rank else tuple(range(rank))

    def _counted(self, dim: int, rank: int) -> int:
        count = max(rank, 1)
        if not -count <= dim < count:
            raise Declined(f"{self.node.op} along dimension {dim} of {rank}")
        return dim % count

    def ints(self, index: int, length: int = 0) -> tuple[int, ...]:
        """A list of static integers; one that stands for all is repeated to ``length``."""
        given = self.args[index]
        values = (given,) if isinstance(given, int) else cast("tuple[object, ...]", given or ())
        if not all(isinstance(v, int) for v in values):
            raise Declined(f"{self.node.op} with a symbolic size")
        numbers = cast("tuple[int, ...]", values)
        return numbers * length if len(numbers) == 1 and length > 1 else numbers

    def dims(self, index: int) -> tuple[Dim, ...]:
        """A list of sizes."""
        return tuple(as_dim(d, self.node.op) for d in cast("tuple[object, ...]", self.args[index]))

    def number(self, index: int) -> bool | int | float:
        """A static Python number."""
        given = self.args[index]
        if isinstance(given, (bool, int, float)):
            return given
        raise Declined(f"{self.node.op} with a {type(given).__name__} where it needs a plain number")

    def static(self, index: int) -> tuple[int, ...]:
        """The shape of an operand that has to be static."""
        shape = self.type(index).shape
        if not self.type(index).is_static:
            raise Declined(f"{self.node.op} of a dynamic shape")
        return cast("tuple[int, ...]", shape)


Result: TypeAlias = "Ref | tuple[Ref | None, ...]"
Rule: TypeAlias = Callable[[Call], Result]


def as_value(arg: object, op: str) -> Value:
    """An operand that has to be a tensor value."""
    if isinstance(arg, Value):
        return arg
    raise Declined(f"{op} of a {type(arg).__name__} where it needs a tensor")


def as_dim(arg: object, op: str) -> Dim:
    """A size: an integer or an expression."""
    match arg:
        case int():
            return arg
        case DimExpr(expr=expr):
            return expr
    raise Declined(f"{op} with a size that is no expression over symbols")


def computed_type(type_: TensorType) -> DType:
    """The element type in which tensors of a type are computed."""
    return computed(type_.dtype)


def promoted(args: Iterable[object]) -> DType:
    """The element type in which torch computes on these operands.

    Tensors win over 0-d tensors, those over numbers, within a kind. Source: torch.result_type.
    """
    ranks: list[DType | None] = [None, None, None]  # tensors, 0-d tensors, numbers
    for arg in args:
        place, dtype = _priority(arg)
        known = ranks[place]
        ranks[place] = dtype if known is None else _wider(known, dtype)
    found = [dtype for dtype in ranks if dtype is not None]
    return max(found, key=_kind)  # the first of equal kinds


def _priority(arg: object) -> tuple[int, DType]:
    match arg:
        case Value(type=TensorType() as type_):
            return (0 if type_.rank else 1), type_.dtype
        case Value(type=ScalarType()) | DimExpr():
            return 2, DType.i64
        case bool() | int() | float():
            return 2, _natural(arg)
    raise Declined(f"{type(arg).__name__} as an operand")


def _natural(value: bool | int | float) -> DType:
    if isinstance(value, bool):
        return DType.bool
    return DType.i64 if isinstance(value, int) else DType.f32


def _as(value: bool | int | float, dtype: DType) -> bool | int | float:
    if dtype is DType.bool:
        return bool(value)
    if dtype.is_floating:
        return float(value)
    if not math.isfinite(value):
        raise Declined(f"{value} as an integer")
    return wrapped(int(value), dtype)


def wrapped(value: int, dtype: DType) -> int:
    """What is left of an integer in the bits of its type, as C++ converts it: -1 is the largest byte."""
    bits = 8 * dtype.itemsize
    low = 0 if dtype in (DType.u8, DType.u16, DType.u32, DType.u64) else -(1 << bits - 1)
    return (value - low) % (1 << bits) + low


def _kind(dtype: DType) -> int:
    if dtype is DType.bool:
        return 0
    return 1 if dtype.is_integer else 2


def _wider(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if _kind(a) != _kind(b):
        return a if _kind(a) > _kind(b) else b
    if {a, b} == {DType.f16, DType.bf16}:
        return DType.f32
    if {a, b} == {DType.u8, DType.i8}:
        return DType.i16
    return a if a.itemsize >= b.itemsize else b
