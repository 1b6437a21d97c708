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


def truth_of(value: Any) -> dims.Dim:
    """The integer expression that is 1 where a torch.SymBool holds and 0 where it does not."""
    return dims.normalize(_truth(value.node.expr))


def _truth(expr: Any) -> str:
    name = type(expr).__name__
    if name in ("BooleanTrue", "BooleanFalse"):
        return str(int(name == "BooleanTrue"))
    if name == "Not":
        return f"(1 - {_truth(expr.args[0])})"
    if name in ("And", "Or"):
        return f"{'min' if name == 'And' else 'max'}({', '.join(map(_truth, expr.args))})"
    if name not in _COMPARISONS:
        return _no(expr)
    a, b = map(_text, expr.args)
    return _COMPARISONS[name].format(a=a, b=b)


_COMPARISONS = {
    "StrictGreaterThan": "min(max({a} - ({b}), 0), 1)",
    "GreaterThan": "min(max({a} - ({b}) + 1, 0), 1)",
    "StrictLessThan": "min(max({b} - ({a}), 0), 1)",
    "LessThan": "min(max({b} - ({a}) + 1, 0), 1)",
    "Unequality": "min(max({a} - ({b}), {b} - ({a})), 1)",
    "Equality": "(1 - min(max({a} - ({b}), {b} - ({a})), 1))",
}


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
