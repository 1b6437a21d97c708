"""Real ops put into a graph by the rules of complex numbers, with the types of their results worked out."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fairlead.errors import VerificationError
from fairlead.ir import Argument, Dim, DimExpr, DType, ScalarType, TensorType, Token, Type, Value
from fairlead.ir.infer import infer
from fairlead.passes import Emitter
from fairlead_onnx._writer import Declined

__all__ = ["REAL", "Ops", "Pair", "Part", "shape_argument"]

REAL = {DType.c64: DType.f32, DType.c128: DType.f64}
"""The element type of the parts of a complex number."""

Part: TypeAlias = "Value | DimExpr | float"
"""One part of a complex number: a real tensor, or a number that every element has."""


class Pair(NamedTuple):
    """A complex number in two parts."""

    re: Part
    im: Part


class Ops:
    """Ops of real numbers of one element type. What is a number in both operands is computed here."""

    def __init__(self, emit: Emitter, dtype: DType, device: str) -> None:
        self.emit = emit
        self.dtype = dtype
        self.device = device

    def __call__(self, op: str, *args: Argument) -> Value:
        """Any op of one result."""
        (type_,) = self.types(op, args) or (None,)
        if type_ is None:
            raise Declined(f"{op} of the parts of complex numbers has a result of unknown shape")
        return self.emit(op, args, type_)

    def types(self, op: str, args: tuple[Argument, ...]) -> tuple[Type | None, ...]:
        """The types of the results of an op; none where they are not known."""
        try:
            return infer(op, args)
        except VerificationError as error:
            raise Declined(error.what) from error

    def add(self, x: Part, y: Part) -> Part:
        if x == 0.0 or y == 0.0:
            return y if x == 0.0 else x
        return x + y if _plain(x, y) else self("aten.add.Tensor", x, y, 1)  # type: ignore[operator]

    def sub(self, x: Part, y: Part) -> Part:
        if y == 0.0:
            return x
        if x == 0.0:
            return self.neg(y)
        return x - y if _plain(x, y) else self("aten.sub.Tensor", x, y, 1)  # type: ignore[operator]

    def mul(self, x: Part, y: Part) -> Part:
        """A product with 0 stays one: it is no number where the other operand is infinite."""
        if x == 1.0 or y == 1.0:
            return y if x == 1.0 else x
        if _plain(x, y):
            return x * y  # type: ignore[operator]
        return self("aten.mul.Tensor", x, y) if isinstance(x, Value) else self("aten.mul.Tensor", y, x)

    def div(self, x: Part, y: Part) -> Part:
        """A quotient, of which one operand is a tensor."""
        return x if y == 1.0 else self("aten.div.Tensor", x, y)

    def neg(self, x: Part) -> Part:
        return -x if isinstance(x, (int, float)) else self("aten.neg.default", self.tensor(x))

    def unary(self, name: str, x: Part) -> Value:
        return self(f"aten.{name}.default", self.tensor(x))

    def compare(self, name: str, x: Part, y: Part) -> Value:
        """``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge``."""
        return self(f"aten.{name}.Tensor", self.tensor(x), y)

    def both(self, x: Value, y: Value) -> Value:
        return self("aten.logical_and.default", x, y)

    def either(self, x: Value, y: Value) -> Value:
        return self("aten.logical_or.default", x, y)

    def where(self, condition: Value, x: Part, y: Part) -> Value:
        """The elements of ``x`` where the condition holds, of ``y`` elsewhere."""
        return self("aten.where.self", condition, self.tensor(x), self.tensor(y))

    def tensor(self, x: Part) -> Value:
        """A part as a tensor, of no dimensions where it is a number."""
        return x if isinstance(x, Value) else self.full((), x)

    def full(self, shape: tuple[Dim, ...], fill: Argument) -> Value:
        layout, device = Token("layout", "strided"), Token("device", self.device)
        return self("aten.full.default", shape_argument(shape), fill, Token("dtype", self.dtype), layout, device, False)

    def cast(self, x: Value) -> Value:
        """A tensor in the element type of the parts."""
        if isinstance(x.type, ScalarType) or x.tensor.dtype == self.dtype:
            return x
        return self("aten._to_copy.default", x, Token("dtype", self.dtype), None, None, None, False, None)

    def whole(self, x: Part, shape: tuple[Dim, ...]) -> Value:
        """A part with all its elements."""
        if not isinstance(x, Value) or isinstance(x.type, ScalarType):
            return self.full(shape, x)
        return x if x.tensor.shape == shape else self("aten.expand.default", x, shape_argument(shape), False)

    def permute(self, x: Value, order: tuple[int, ...]) -> Value:
        return x if order == tuple(range(x.tensor.rank)) else self("aten.permute.default", x, order)

    def view(self, x: Value, shape: tuple[Dim, ...]) -> Value:
        if x.tensor.shape == shape:
            return x
        return self.emit("aten.view.default", (x, shape_argument(shape)), self.type(shape))

    def type(self, shape: tuple[Dim, ...]) -> TensorType:
        return TensorType(self.dtype, shape, None, self.device)

    def stack(self, z: Pair, shape: tuple[Dim, ...]) -> Value:
        """The parts of each number beside each other, as `torch.view_as_real` has them."""
        parts = tuple(self("aten.unsqueeze.default", self.whole(part, shape), -1) for part in z)
        return self("aten.cat.default", parts, -1)

    def unstack(self, x: Value) -> Pair:
        """The numbers whose parts lie in the last dimension."""
        return Pair(*(self("aten.select.int", x, -1, which) for which in range(2)))


def shape_argument(shape: tuple[Dim, ...]) -> tuple[Argument, ...]:
    """A shape as an argument: integers, and expressions where it depends on symbols."""
    return tuple(d if isinstance(d, int) else DimExpr(d) for d in shape)


def _plain(*parts: Part) -> bool:
    return all(isinstance(part, (int, float)) for part in parts)
