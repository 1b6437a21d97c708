"""What can be changed in the code of a rule, and which changes provably mean the same."""

from __future__ import annotations

import ast
import collections
from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = ["SAME", "Changes"]

_OPERATORS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip

_NAMES = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "argmax": "argmin", "argmin": "argmax",
    "floor": "ceil", "ceil": "floor", "exp": "expm1", "log": "log1p", "log1p": "log", "any": "all", "all": "any",
    "logical_and": "logical_or", "logical_or": "logical_and", "fmax": "maximum", "fmin": "minimum", "sum": "prod",
    "prod": "sum", "abs": "negative", "trunc": "floor", "rint": "trunc", "left_shift": "right_shift", "sin": "cos",
    "cos": "sin", "sinh": "cosh", "cosh": "sinh", "cumsum": "cumprod", "cumprod": "cumsum", "multiply": "add",
}  # fmt: skip


SAME: Mapping[str, str] = {
    "unchanged": "a factor of 1.01 leaves zero what it is",
    "symmetric": "functions whose two arguments may be exchanged: maximum, minimum, gcd, and the like",
    "squared": "the difference in a square or in an absolute value, which may be taken either way",
    "reshaped": "the size that reshape is to work out, for which any negative number stands",
    "excluded": "an order at a number that the same conjunction rules out: of x != 0 and x < 0, the second",
}
"""Changes that provably mean the same, by rule: they are no mutants."""

_UNSEEN = frozenset({"strict", "negative", "sparse"})
"""Flags that no valid case tells: of zip, of our check of indices, and of `np.indices`, whose results broadcast."""

_SYMMETRIC = frozenset(
    {
        *("maximum", "minimum", "fmax", "fmin", "max", "min", "gcd", "lcm", "add", "multiply", "equal", "not_equal"),
        *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "hypot"),
    }
)


class Changes(ast.NodeTransformer):
    """Counts the places that can be changed, and changes the one of a number. Annotations and defaults stay."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted = wanted
        self.found: list[tuple[int, str]] = []
        self.same: collections.Counter[str] = collections.Counter()
        self._either_way: set[int] = set()
        self._sizes: set[int] = set()
        self._ruled_out: set[int] = set()

    def _is_wanted(self, node: Any, change: str) -> bool:
        self.found.append((node.lineno, change))
        return len(self.found) - 1 == self.wanted

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.body = [s if isinstance(s, ast.AnnAssign) else self.visit(s) for s in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.value = self.visit(node.value) if node.value else None
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        return node

    def visit_If(self, node: ast.If) -> Any:
        """What guards an error is left alone: no valid case comes to it."""
        return node if isinstance(node.body[0], ast.Raise) else self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> Any:
        """What guards an error, and what says how memory is laid out, is left alone."""
        return node if node.arg in _UNSEEN else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            self._either_way.add(id(node.left))
        self._ruled_out |= _ruled_out(node)
        self.generic_visit(node)
        if (other := _OPERATORS.get(type(node.op))) and self._is_wanted(node, _became(node.op, other)):
            node.op = other()  # type: ignore[assignment]
        if isinstance(node.op, ast.Sub) and id(node) in self._either_way:
            self.same["squared"] += 1
        elif isinstance(node.op, ast.Sub | ast.Div) and self._is_wanted(node, "operands exchanged"):
            node.left, node.right = node.right, node.left
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        other = _OPERATORS[type(node.op)]
        if self._is_wanted(node, _became(node.op, other)):
            node.op = other()  # type: ignore[assignment]
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        for place, op in enumerate(node.ops):
            if id(node) in self._ruled_out:
                self.same["excluded"] += 1
            elif (other := _OPERATORS.get(type(op))) and self._is_wanted(node, _became(op, other)):
                node.ops[place] = other()  # type: ignore[call-overload]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if self._is_wanted(node, f"{type(node.op).__name__} removed"):
            return node.operand
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        match node.value:
            case bool():
                changes: list[Any] = [not node.value]
            case int():
                changes = [node.value + 1, node.value - 1]
            case float():
                changes = [node.value * 1.01]
            case _:
                changes = []
        for changed in changes:
            if changed == node.value:
                self.same["unchanged"] += 1
            elif id(node) in self._sizes and changed > 0:
                self.same["reshaped"] += 1
            elif self._is_wanted(node, f"{node.value} became {changed}"):
                return ast.copy_location(ast.Constant(changed), node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        name = _called_name(node.func)
        if name in ("abs", "square"):
            self._either_way |= {id(argument) for argument in node.args}
        if name == "reshape":
            self._sizes |= _sizes_left_open(node)
        self.generic_visit(node)
        two = len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args)
        if two and name in _SYMMETRIC:
            self.same["symmetric"] += 1
        elif two and self._is_wanted(node, "arguments exchanged"):
            node.args.reverse()
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if (other := _NAMES.get(node.attr)) and self._is_wanted(node, f"{node.attr} became {other}"):
            node.attr = other
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        if self._is_wanted(node, "branches exchanged"):
            node.body, node.orelse = node.orelse, node.body
        return node


def _called_name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _ruled_out(conjunction: ast.BinOp) -> set[int]:
    """The comparisons of order among what is joined by ``&`` whose two sides another one says are not equal."""
    compared = [c for c in _joined(conjunction) if isinstance(c, ast.Compare) and len(c.ops) == 1]
    unequal = {ast.dump(c.left) + ast.dump(c.comparators[0]) for c in compared if isinstance(c.ops[0], ast.NotEq)}
    orders = [c for part in _joined(conjunction) for c in ast.walk(part) if _is_order(c)]
    return {id(c) for c in orders if ast.dump(c.left) + ast.dump(c.comparators[0]) in unequal}


def _joined(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        return [*_joined(node.left), *_joined(node.right)]
    return [node]


def _is_order(node: ast.AST) -> TypeGuard[ast.Compare]:
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)


def _sizes_left_open(call: ast.Call) -> set[int]:
    """The constants n of sizes -n among a reshape's arguments, those that a step of one keeps negative."""
    sizes = [size for argument in call.args for size in _leaves(argument)]
    negative = [size.operand for size in sizes if isinstance(size, ast.UnaryOp) and isinstance(size.op, ast.USub)]
    return {id(constant) for constant in negative if isinstance(constant, ast.Constant)}


def _leaves(shape: ast.expr) -> list[ast.expr]:
    """The expressions that a shape's sizes are, through tuples, their sums, and choices."""
    match shape:
        case ast.Tuple(elts=parts):
            return [leaf for part in parts for leaf in _leaves(part)]
        case ast.BinOp(left=one, op=ast.Add(), right=other) | ast.IfExp(body=one, orelse=other):
            return [*_leaves(one), *_leaves(other)]
    return [shape]


def _became(op: ast.AST, other: type[ast.AST]) -> str:
    return f"{type(op).__name__} became {other.__name__}"
