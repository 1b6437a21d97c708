"""Torch's symbolic sizes (sympy expressions) to dimensions of the IR."""

from __future__ import annotations

from typing import Any

from fairlead.ir import dims


class NotADimension(Exception):
    """A symbolic number that is no integer expression over + - * // % min max."""


def dim_of(value: Any) -> dims.Dim:
    """The dimension that a Python int or a torch.SymInt stands for."""
    if isinstance(value, int):
        return value
    return dims.normalize(_text(value.node.expr))


def stride_of(value: Any) -> dims.Dim:
    """The same of a stride. Torch counts sizes below one as one in them; a tensor without elements has no use for that.

    Left in, it would tell a contiguous tensor of symbolic sizes apart from one that is row-major.
    """
    if isinstance(value, int):
        return value
    return dims.normalize(_text(value.node.expr.replace(_is_at_least_one, _without_one)))


def _is_at_least_one(expr: Any) -> bool:
    return type(expr).__name__ == "Max" and len(expr.args) == 2 and any(a == 1 for a in expr.args)


def _without_one(expr: Any) -> Any:
    return next(a for a in expr.args if a != 1)


def _text(expr: Any) -> str:
    if expr.is_Integer:
        return str(int(expr))
    if expr.is_Symbol:
        return str(expr)
    name = type(expr).__name__
    args = [_text(a) for a in expr.args] if name != "Pow" else []
    match name:
        case "Add":
            return "(" + " + ".join(args) + ")"
        case "Mul":
            return "(" + "*".join(args) + ")"
        case "Pow" if expr.exp.is_Integer and 0 <= int(expr.exp) <= 8:
            return "(" + "*".join([_text(expr.base)] * int(expr.exp) or ["1"]) + ")"
        case "FloorDiv" | "CleanDiv":
            return f"({args[0]} // {args[1]})"
        case "CeilDiv" | "CeilToInt":
            return f"(-(-({args[0]}) // ({args[1]})))" if len(args) == 2 else _no(expr)
        case "Mod" | "PythonMod":
            return f"({args[0]} % {args[1]})"
        case "ModularIndexing":
            return f"(({args[0]} // {args[1]}) % {args[2]})"
        case "Max" | "Min":
            return f"{name.lower()}({', '.join(args)})"
    return _no(expr)


def _no(expr: Any) -> str:
    raise NotADimension(str(expr))
