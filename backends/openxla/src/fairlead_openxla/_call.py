"""One node as its rule sees it, at sizes that are known."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.ir import Argument, Complex, DimExpr, DType, Node, TensorType, Token, Value, dims
from fairlead_openxla._layouts import Layout, Wanted, behind
from fairlead_openxla._numbers import Array
from fairlead_openxla._target import on_cpu

__all__ = ["Call", "Program"]


class Program:
    """What nodes share while a graph is written: sizes, values, layouts of weights, and what has to hold at run time.

    ``placed`` has, by value and layout, the arrays of weights; ``turned``, by value, the matrix of which it is the
    transpose. ``stacks`` are those of the graph, ``images`` the values that are made with channels last. ``checks`` are
    arrays of booleans, each with what is wrong where one of them is false.
    """

    def __init__(self, sizes: Mapping[str, int], stacks: Mapping[int, int] | None = None) -> None:
        self.sizes = sizes
        self.stacks = stacks or {}
        self.values: dict[int, Any] = {}
        self.placed: dict[tuple[int, Layout], Sequence[Array]] = {}
        self.turned: dict[int, Array] = {}
        self.images: set[int] = set()
        self.checks: list[tuple[Array, type[Exception], str]] = []

    def shape(self, shape: tuple[dims.Dim, ...]) -> tuple[int, ...]:
        """A shape in numbers."""
        return tuple(dims.evaluate(d, self.sizes) for d in shape)

    def argument(self, arg: Argument) -> Any:
        """An argument as rules take it."""
        match arg:
            case Value():
                return self.values[arg.id]
            case DimExpr(expr=expr):
                return dims.evaluate(expr, self.sizes)
            case Token(kind="dtype", name=name):
                return DType(name)
            case Complex(re=re, im=im):
                return complex(re, im)
            case tuple():
                return tuple(self.argument(a) for a in arg)
        return arg


class Call:
    """A node, and what its rule may ask besides the arguments.

    ``is_image``: the result is quicker to read if it is made with channels last, and then turned around.
    """

    def __init__(self, node: Node, program: Program, wanted: Wanted | None = None, *, is_image: bool = False) -> None:
        self.node = node
        self.is_image = is_image
        self._program = program
        self._wanted = wanted

    @functools.cached_property
    def dtype(self) -> DType:
        """The element type of the first result that is used."""
        return next(r for r in self.node.results if r is not None).tensor.dtype

    def wants(self, index: int) -> bool:
        """Whether somebody uses this result."""
        return index < len(self.node.results) and self.node.results[index] is not None

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """The declared shape of a result that is used."""
        result = self.node.results[index]
        assert result is not None, "a rule asks only for shapes of results that are used"
        return self._program.shape(result.tensor.shape)

    def declared(self, index: int) -> TensorType:
        """The type of a tensor operand."""
        value = self.node.args[index]
        assert isinstance(value, Value), "the argument is a tensor"
        return value.tensor

    def placed(self) -> Sequence[Array] | None:
        """The arrays of the weight that lies as this rule wants it, where that is so."""
        if self._wanted is None:
            return None
        index, layout = self._wanted
        value = self.node.args[index]
        assert isinstance(value, Value), "a rule wants tensors placed"
        return self._program.placed.get(behind(value.id, layout, self._program.stacks))

    def turned(self, index: int) -> Array | None:
        """The matrix whose transpose the operand of this index is, which is a view of it."""
        value = self.node.args[index]
        return self._program.turned.get(value.id) if isinstance(value, Value) else None

    def require(self, holds: Array, what: str, error: type[Exception] = IndexError) -> None:
        """Have the call raise where not all of ``holds`` is true, as torch does: XLA would take another element.

        Torch's kernels on CUDA look at indices too, and divide by zero.
        """
        if error is ZeroDivisionError and not on_cpu():
            return
        self._program.checks.append((holds, error, f"{what} in {self.node.op}"))
