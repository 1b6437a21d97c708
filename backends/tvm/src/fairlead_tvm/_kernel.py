"""One kernel while it is written: its parameters, its loops, and the values that it has named."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairlead.ir import DType
from fairlead.ir.dims import Dim, free_symbols
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Index, Memory, Strided
from fairlead_tvm._tvm import SERIAL, Buffer, Expr, Loop, Stmt

__all__ = ["Kernel", "Sizes"]

_ENOUGH = 1 << 15
"""Steps of a loop that are worth waking other threads for."""


class Sizes:
    """Dimensions as expressions over the variables of a graph's symbols."""

    def __init__(self, names: Sequence[str]) -> None:
        self.variables = {name: t.size_var(name) for name in names}
        self._known: dict[Dim, Any] = {}

    def __call__(self, dim: Dim) -> Expr | int:
        if isinstance(dim, int):
            return dim
        if dim not in self._known:
            self._known[dim] = _written(dim, self.variables)
        return self._known[dim]


def _written(dim: str, variables: dict[str, Expr]) -> Expr:
    import ast

    def expression(node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=int(value)):
                return t.const(value, DType.i64)
            case ast.Name(id=name):
                return variables[name]
            case ast.UnaryOp(operand=operand):
                return t.const(0, DType.i64) - expression(operand)
            case ast.BinOp(left=left, op=op, right=right):
                x, y = expression(left), expression(right)
                match op:
                    case ast.Add():
                        return x + y
                    case ast.Sub():
                        return x - y
                    case ast.Mult():
                        return x * y
                    case ast.FloorDiv():
                        return x // y
                return x % y
            case ast.Call(func=ast.Name(id=name), args=args):
                parts = [expression(a) for a in args]
                found = parts[0]
                for part in parts[1:]:
                    found = t.minimum(found, part) if name == "min" else t.maximum(found, part)
                return found
        raise AssertionError(ast.dump(node))

    return expression(ast.parse(dim, mode="eval").body)


class _Frame:
    """Statements of one block, and the elements that are known within it."""

    def __init__(self) -> None:
        self.statements: list[Stmt] = []
        self.elements: dict[Any, tuple[Expr, Any]] = {}


class Kernel:
    """A function of memory and sizes that writes ``out``.

    ``products`` are the accumulators of products that this kernel computes, by the identity of the product.
    """

    def __init__(self, sizes: Sizes, *, threads: int, vectors: bool = True) -> None:
        self._vectors = vectors
        self.calls_out = False
        self._sizes = sizes
        self._threads = threads
        self._views: dict[int, tuple[Memory, Buffer, Buffer]] = {}
        self._declared: list[Stmt] = []
        self._symbols: set[str] = set()
        self._zeros: dict[tuple[DType, str], Expr] = {}
        self._frames = [_Frame()]
        self._parallel = self._is_shared = False
        self._lanes: tuple[Expr | int, Expr | int] = (0, 1)
        self.products: dict[int, Callable[[Index], Expr]] = {}

    # what is read

    def size(self, dim: Dim) -> Expr | int:
        """A dimension as a number or an expression."""
        self._symbols |= free_symbols(dim)
        return self._sizes(dim)

    def load(self, memory: Memory, at: Expr | int) -> Expr:
        found = self._view(memory, "in")[at]
        return t.widened(found) if memory.dtype is DType.bf16 else found

    def _view(self, memory: Memory, name: str) -> Buffer:
        if id(memory) not in self._views:
            shape = [self.size(d) for d in memory.shape]
            whole = t.buffer(f"{name}{len(self._views)}", shape, memory.dtype)
            count: Expr | int = 1
            for d in shape:
                count = d * count
            view, declaration = t.flat_view(whole, count, memory.dtype)
            self._declared.append(declaration)
            self._views[id(memory)] = memory, whole, view
        return self._views[id(memory)][2]

    def element(self, array: Array, index: Index) -> Expr:
        """An element, which is computed once in a block."""
        key = (id(array), *((i if isinstance(i, int) else id(i)) for i in index))
        for frame in self._frames:
            if key in frame.elements:
                return frame.elements[key][0]
        value = array.element(self, index)
        if array.cost > 0:
            value = self.named(value, array.dtype)
        self._frames[-1].elements[key] = value, (array, tuple(index))
        return value

    def named(self, value: Expr, dtype: DType) -> Expr:
        """A value that is computed here once, and read from a local.

        TVM would put a bound variable's value for it wherever it reasons about conditions: a time that doubles with
        each one. Of booleans there are no vectors in memory.
        """
        if dtype is DType.bool or t.is_constant(value):
            return value
        lane, width = self._lanes
        held = self.local((width,), DType.f32 if dtype is DType.bf16 else dtype)
        self.emit(t.store(held, value, lane))
        return held[t.index(lane)]

    def settled(self, index: Expr | int) -> Expr | int:
        """An index that TVM takes as it is: over symbols, what it simplifies takes it minutes."""
        return index if isinstance(index, int) else self.named(index, DType.i64)

    def number(self, value: Any, dtype: DType) -> Expr:
        """A constant; a floating zero under a name, since TVM takes ``x * 0`` for 0 and ``x + 0`` for x."""
        if not dtype.is_floating or value != 0:
            return t.const(value, dtype)
        key = dtype, str(float(value))
        if key not in self._zeros:
            self._zeros[key] = t.variable("zero", dtype)
            self._declared.append(t.bind(self._zeros[key], t.const(value, dtype)))
        return self._zeros[key]

    def extern(self, name: str, dtype: DType, *args: Expr) -> Expr:
        """A function of the C library, by its name for f64. Its kernel has no vectors."""
        self.calls_out = True
        return t.extern(name if dtype is DType.f64 else f"{name}f", dtype, *args)

    # what is written

    def emit(self, statement: Stmt) -> None:
        self._frames[-1].statements.append(statement)

    @contextlib.contextmanager
    def loop(self, extent: Expr | int, kind: Loop = SERIAL) -> Iterator[Expr | int]:
        """A loop over what is written within; none where the extent is 1."""
        if isinstance(extent, int) and extent == 1:
            yield 0
            return
        kind = SERIAL if kind == t.VECTOR and not self._vectors else kind
        i, outside = t.size_var("i"), self._lanes
        self._lanes = (i, extent) if kind == t.VECTOR else outside
        self._frames.append(_Frame())
        yield i
        body = self._frames.pop().statements
        self._lanes = outside
        if body:
            self.emit(t.loop(i, extent, t.sequence(body), kind))

    @contextlib.contextmanager
    def shared(self, extent: Expr | int, work: Expr | int) -> Iterator[Expr | int]:
        """A loop whose steps several threads may take, where all of ``work`` steps below it are worth it."""
        worth = self._threads > 1 and not self._parallel and (not isinstance(work, int) or work >= _ENOUGH)
        if not worth or (isinstance(extent, int) and extent == 1):
            with self.loop(extent) as i:
                yield i
            return
        self._parallel = self._is_shared = True
        with self.loop(extent, t.PARALLEL) as i:
            yield i
        self._parallel = False

    @contextlib.contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        """A block that runs only where the condition holds."""
        self._frames.append(_Frame())
        yield
        body = self._frames.pop().statements
        if body:
            self.emit(t.guarded(condition, t.sequence(body)))

    def local(self, shape: Sequence[Expr | int], dtype: DType) -> Buffer:
        """Memory that lasts for the block."""
        made = t.buffer("local", shape, dtype, aligned=True)
        self.emit(t.alloc(made))
        return made

    def store(self, target: Buffer, value: Expr, *index: Expr | int) -> None:
        self.emit(t.store(target, value, *index))

    def write(self, out: Strided, index: Index, value: Expr) -> None:
        """Store an element of the result."""
        at = self.size(out.offset)
        for i, stride in zip(index, out.strides, strict=True):
            at = at + i * self.size(stride)
        value = t.narrowed(value) if out.dtype is DType.bf16 else value
        self.emit(t.store(self._view(out.memory, "out"), value, at))

    def finished(self, out: Memory) -> tuple[Any, list[Any], list[str]]:
        """The function, the values that it reads in order, and the symbols that follow them."""
        self._view(out, "out")
        buffers = [(memory.value, whole) for memory, whole, _ in self._views.values() if memory is not out]
        symbols = sorted(self._symbols)
        parameters = [w for _, w in buffers] + [self._sizes.variables[s] for s in symbols]
        body = t.sequence([*self._declared, *self._frames[0].statements])
        function = t.kernel([*parameters, self._views[id(out)][1]], body, shared=self._is_shared)
        return function, [v for v, _ in buffers], symbols
