"""Dimensions: integers, or canonical integer expressions over named symbols.

A dimension is an ``int``, or a ``str`` that holds an expression in normal form: a polynomial with integer coefficients
whose atoms are symbols and the functions ``//``, ``%``, ``min`` and ``max``. Two expressions that are equal as
polynomials have the same text, so that equality of dimensions is equality of Python values.

>>> normalize("b*2 + b")
'3*b'
>>> normalize("(4*s + 8)//4")
's + 2'
>>> evaluate("s//2 + 1", {"s": 9})
5
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable, Mapping

from fairlead.errors import IRFormatError
from fairlead.ir._normal_form import MAX_TEXT, Dim, no_dimension, normal_form

__all__ = ["Dim", "add", "evaluate", "evaluator", "free_symbols", "is_normal", "mul", "normalize", "product", "rename"]


def normalize(text: Dim) -> Dim:
    """The normal form of an expression over ``+ - * // %``, ``min`` and ``max``.

    Raises `IRFormatError` for text that is not such an expression.
    """
    return text if isinstance(text, int) else _normalize_text(text)


@functools.lru_cache(maxsize=16384)
def _normalize_text(text: str) -> Dim:
    return normal_form(_parse(text), text)


def is_normal(dim: Dim) -> bool:
    """Whether a dimension is an integer or a symbolic expression in normal form; never raises.

    >>> is_normal("s + 2"), is_normal("2 + s"), is_normal("2 + 2")
    (True, False, False)
    """
    if isinstance(dim, int):
        return not isinstance(dim, bool)
    return isinstance(dim, str) and _is_normal_text(dim)


@functools.lru_cache(maxsize=16384)
def _is_normal_text(text: str) -> bool:
    try:
        tree = _parse(text)
        # Multiplying sums out is what makes normalizing a hostile text slow, so look for products of sums first.
        return not any(map(_is_product_of_sums, ast.walk(tree))) and _normalize_text(text) == text
    except IRFormatError:
        return False


def _is_product_of_sums(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and (_is_sum(node.left) or _is_sum(node.right))


def _is_sum(node: ast.expr) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def add(*dims: Dim) -> Dim:
    """The sum, in normal form."""
    if all(isinstance(d, int) for d in dims):
        return sum(d for d in dims if isinstance(d, int))
    return normalize(" + ".join(f"({d})" for d in dims))


def mul(*dims: Dim) -> Dim:
    """The product, in normal form."""
    return product(dims)


def product(dims: Iterable[Dim]) -> Dim:
    """The product of any number of dimensions, 1 for none."""
    number = 1
    symbolic = []
    for d in dims:
        if isinstance(d, int):
            number *= d
        else:
            symbolic.append(f"({d})")
    if not symbolic:
        return number
    return normalize("*".join([str(number), *symbolic]))


def rename(dim: Dim, names: Mapping[str, str]) -> Dim:
    """The same expression over other symbols, or with numbers in the place of some.

    >>> rename("a*b", {"a": "z"}), rename("a*b", {"a": "2"})
    ('b*z', '2*b')
    """
    if isinstance(dim, int):
        return dim
    return normalize(_NAME.sub(lambda name: name[0] if name[0] in _FUNCTIONS else names.get(name[0], name[0]), dim))


@functools.lru_cache(maxsize=16384)
def free_symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols in an expression; empty for an integer."""
    if isinstance(dim, int):
        return frozenset()
    return frozenset(n.id for n in ast.walk(_parse(dim)) if isinstance(n, ast.Name)) - _FUNCTIONS


def evaluate(dim: Dim, env: Mapping[str, int]) -> int:
    """The value of an expression where ``env`` gives each symbol a value."""
    return dim if isinstance(dim, int) else evaluator(dim)(env)


@functools.lru_cache(maxsize=16384)
def evaluator(dim: Dim) -> Callable[[Mapping[str, int]], int]:
    """A function of the symbols' values, for expressions that are evaluated often."""
    if isinstance(dim, int):
        return lambda env: dim
    return _compile(_parse(dim))


_FUNCTIONS = frozenset({"min", "max"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What Python's parser may see: nothing that it would warn about or take long over. Atomic, so that it cannot backtrack.
_TOKENS = re.compile(r"(?>\s*(?>[0-9]+(?![A-Za-z_])|[A-Za-z_][A-Za-z0-9_]*|//|[-+*%(),]))+\s*")
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


@functools.lru_cache(maxsize=16384)
def _parse(text: str) -> ast.expr:
    if len(text) > MAX_TEXT:
        raise no_dimension(text, f"it is longer than {MAX_TEXT} characters")
    if not _TOKENS.fullmatch(text):
        raise no_dimension(text, "it has a character or word that no expression has")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise no_dimension(text, str(error)) from error


def _compile(node: ast.expr) -> Callable[[Mapping[str, int]], int]:
    match node:
        case ast.Constant(value=int(value)):
            return lambda env: value
        case ast.Name(id=name):
            return lambda env: env[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _compile(operand)
            return lambda env: -inner(env)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            f, a, b = _OPERATORS[type(op)], _compile(left), _compile(right)
            return lambda env: f(a(env), b(env))
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args):
            pick = min if name == "min" else max
            parts = [_compile(arg) for arg in args]
            return lambda env: pick(part(env) for part in parts)
    raise no_dimension(ast.unparse(node), "it has another operator")
