"""Integer expressions over symbols, written as ONNX arithmetic on one-element tensors of 64-bit integers."""

from __future__ import annotations

import ast
import functools

from fairlead_onnx._writer import Ref, Writer

__all__ = ["write_dim"]

_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Mod: "Mod"}


def write_dim(writer: Writer, text: str) -> Ref:
    """The value of an expression in the normal form of `fairlead.ir.dims`."""
    return _write(writer, _parse(text))


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _write(w: Writer, node: ast.expr) -> Ref:
    match node:
        case ast.Constant(value=int(value)):
            return w.ints(value)
        case ast.Name(id=name):
            return w.symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return w.op("Neg", _write(w, operand))
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            a, b = _write(w, left), _write(w, right)
            # ONNX divides towards zero, Python towards minus infinity; Mod has Python's sign
            return w.op("Div", w.op("Sub", a, w.op("Mod", a, b)), b)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return w.op(_ARITHMETIC[type(op)], _write(w, left), _write(w, right))
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args):
            return w.op(name.capitalize(), *(_write(w, a) for a in args))
    raise AssertionError(f"{ast.unparse(node)} is not in the normal form of dimensions")
