"""One node on complex numbers as its rule sees it, and the table of these rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from fairlead.ir import Argument, Complex, DimExpr, DType, Node, ScalarType, TensorType, Token, Value
from fairlead.passes import Emitter
from fairlead_onnx._complex_ops import REAL, Ops, Pair, Part
from fairlead_onnx._rules import enter
from fairlead_onnx._writer import Declined

__all__ = ["RULES", "ComplexCall", "Result", "complex_dtypes", "rule"]


class ComplexCall:
    """A node, the ops that its rule may put in its place, and the parts of its operands."""

    def __init__(self, node: Node, emit: Emitter, pairs: Mapping[int, Pair]) -> None:
        self.node = node
        self.args = node.args
        self._pairs = pairs
        values = (*(r for r in node.results if r is not None), *node.operands())
        types = [v.type for v in values if isinstance(v.type, TensorType)]
        widest = max(complex_dtypes(node), key=lambda dtype: dtype.itemsize)
        self.ops = Ops(emit, REAL[widest], types[0].device)

    @property
    def out(self) -> TensorType:
        """The type of the first result that is used."""
        return next(r for r in self.node.results if r is not None).tensor

    def value(self, index: int) -> Value:
        """A real operand."""
        arg = self.args[index]
        if isinstance(arg, Value) and arg.id not in self._pairs:
            return arg
        raise Declined(f"{self.node.op} of a complex number or a number where it needs a real tensor")

    def pair(self, index: int) -> Pair:
        """An operand in two parts; the imaginary one of a real operand is 0."""
        return self.parts(self.args[index])

    def parts(self, arg: Argument) -> Pair:
        ops = self.ops
        match arg:
            case Value() if arg.id in self._pairs:
                return Pair(*(ops.cast(p) if isinstance(p, Value) else p for p in self._pairs[arg.id]))
            case Value():
                return Pair(ops.cast(arg), 0.0)
            case Complex(re=re, im=im):
                return Pair(re, im)
            case DimExpr():
                return Pair(arg, 0.0)
            case bool() | int() | float():
                return Pair(float(arg), 0.0)
        raise Declined(f"{type(arg).__name__} as an operand of {self.node.op}")

    def shape(self, index: int) -> tuple[int | str, ...]:
        """The shape of a tensor operand."""
        arg = self.args[index]
        assert isinstance(arg, Value), f"argument {index} of {self.node.op} is no tensor"
        return arg.tensor.shape

    def real(self, arg: Argument) -> Argument:
        """An argument that is no operand: a complex dtype becomes that of the parts."""
        if isinstance(arg, Token) and arg.kind == "dtype" and DType(arg.name) in REAL:
            return Token("dtype", REAL[DType(arg.name)])
        return arg


Result: TypeAlias = "Pair | Part | tuple[Pair | Part | None, ...]"
Rule: TypeAlias = Callable[[ComplexCall], Result]

RULES: dict[str, Rule] = {}
"""The rule of each op on complex numbers; the modules of rules fill it when they are imported."""

R = TypeVar("R", bound=Rule)


def rule(*ops: str) -> Callable[[R], R]:
    """Enter a function as the rule of these ops."""

    def entered(function: R) -> R:
        enter(RULES, ops, function)
        return function

    return entered


def complex_dtypes(node: Node) -> set[DType]:
    """The complex element types that a node reads or writes."""
    values = (*node.operands(), *(r for r in node.results if r is not None))
    return {v.type.dtype for v in values if not isinstance(v.type, ScalarType) and v.type.dtype.is_complex}
