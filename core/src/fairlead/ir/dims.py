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
from typing import TypeAlias

from fairlead.errors import IRFormatError

__all__ = ["Dim", "add", "evaluate", "evaluator", "free_symbols", "is_normal", "mul", "normalize", "product", "rename"]

Dim: TypeAlias = int | str
"""A dimension: an integer, or an expression in normal form."""

_Monomial: TypeAlias = tuple[str, ...]
_Poly: TypeAlias = dict[_Monomial, int]

# An expression may come from a file that nobody vouches for: these bound what reading one can cost.
_MAX_TEXT = 4096
_MAX_TERMS = 1024
_MAX_DEGREE = 32


def normalize(text: Dim) -> Dim:
    """The normal form of an expression over ``+ - * // %``, ``min`` and ``max``.

    Raises `IRFormatError` for text that is not such an expression.
    """
    return text if isinstance(text, int) else _normalize_text(text)


@functools.lru_cache(maxsize=16384)
def _normalize_text(text: str) -> Dim:
    tree = _parse(text)
    try:
        shown = _show(_poly(tree, text))
    except RecursionError as error:
        raise _bad(text, "it is nested too deeply") from error
    if isinstance(shown, str) and len(shown) > _MAX_TEXT:
        raise _bad(text, f"its normal form is longer than {_MAX_TEXT} characters")
    return shown


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
    """The same expression over other symbols.

    >>> rename("a*b", {"a": "z"})
    'b*z'
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


def _bad(text: object, why: str) -> IRFormatError:
    return IRFormatError(
        f"{str(text)[:80]!r} is not a dimension expression: {why}",
        where="fairlead.ir.dims",
        next="write integers, symbols, + - * // % and min(...), max(...)",
    )


@functools.lru_cache(maxsize=16384)
def _parse(text: str) -> ast.expr:
    if len(text) > _MAX_TEXT:
        raise _bad(text, f"it is longer than {_MAX_TEXT} characters")
    if not _TOKENS.fullmatch(text):
        raise _bad(text, "it has a character or word that no expression has")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _bad(text, str(error)) from error


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
    raise _bad(ast.unparse(node), "it has another operator")


def _poly(node: ast.expr, text: str) -> _Poly:
    match node:
        case ast.Constant(value=bool()):
            raise _bad(text, "a bool is no dimension")
        case ast.Constant(value=int(value)):
            return {(): value} if value else {}
        case ast.Name(id=name):
            return {(name,): 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _scale(_poly(operand, text), -1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _plus(_poly(left, text), _poly(right, text))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _plus(_poly(left, text), _scale(_poly(right, text), -1))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _times(_poly(left, text), _poly(right, text), text)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return _floordiv(_poly(left, text), _poly(right, text), text)
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return _mod(_poly(left, text), _poly(right, text), text)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args, keywords=[]) if args:
            return _extremum(name, [_poly(arg, text) for arg in args])
    raise _bad(text, "it has another operator, name or number")


def _plus(a: _Poly, b: _Poly) -> _Poly:
    out = dict(a)
    for monomial, coefficient in b.items():
        out[monomial] = out.get(monomial, 0) + coefficient
    return {m: c for m, c in out.items() if c}


def _scale(a: _Poly, k: int) -> _Poly:
    return {m: c * k for m, c in a.items()}


def _times(a: _Poly, b: _Poly, text: str) -> _Poly:
    if len(a) * len(b) > _MAX_TERMS or _degree(a) + _degree(b) > _MAX_DEGREE:
        raise _bad(text, f"it has more than {_MAX_TERMS} terms or a degree above {_MAX_DEGREE}")
    out: _Poly = {}
    for ma, ca in a.items():
        for mb, cb in b.items():
            monomial = tuple(sorted(ma + mb))
            out[monomial] = out.get(monomial, 0) + ca * cb
    return {m: c for m, c in out.items() if c}


def _degree(a: _Poly) -> int:
    return max(map(len, a), default=0)


def _exact_quotient(a: _Poly, b: _Poly) -> _Poly | None:
    """``a / b`` where b is one term that divides every term of a."""
    if len(b) != 1:
        return None
    ((mb, cb),) = b.items()
    out: _Poly = {}
    for ma, ca in a.items():
        rest = list(ma)
        for atom in mb:
            if atom not in rest:
                return None
            rest.remove(atom)
        if ca % cb:
            return None
        out[tuple(rest)] = ca // cb
    return out


def _number(a: _Poly) -> int | None:
    return a.get((), 0) if set(a) <= {()} else None


def _floordiv(a: _Poly, b: _Poly, text: str) -> _Poly:
    na, nb = _number(a), _number(b)
    if nb == 0:
        raise _bad(text, "it divides by zero")
    if na is not None and nb is not None:
        return {(): na // nb} if na // nb else {}
    exact = _exact_quotient(a, b)
    if exact is not None:
        return exact
    if nb is not None and nb > 1:  # (k*q + r)//k = q + r//k: move what divides out of the quotient
        whole = {m: c // nb for m, c in a.items() if c % nb == 0}
        rest = {m: c for m, c in a.items() if c % nb}
        if whole:
            return _plus(whole, _floordiv(rest, b, text))
    return {(f"({_operand(a)}//{_operand(b)})",): 1}


def _mod(a: _Poly, b: _Poly, text: str) -> _Poly:
    na, nb = _number(a), _number(b)
    if nb == 0:
        raise _bad(text, "it divides by zero")
    if na is not None and nb is not None:
        return {(): na % nb} if na % nb else {}
    if _exact_quotient(a, b) is not None:
        return {}
    return {(f"({_operand(a)}%{_operand(b)})",): 1}


def _extremum(name: str, parts: list[_Poly]) -> _Poly:
    texts = sorted({str(_show(p)) for p in parts})
    if len(texts) == 1:
        return parts[0]
    numbers = [n for n in map(_number, parts) if n is not None]
    if len(numbers) == len(parts):
        value = min(numbers) if name == "min" else max(numbers)
        return {(): value} if value else {}
    return {(f"{name}({', '.join(texts)})",): 1}


def _operand(poly: _Poly) -> str:
    text = str(_show(poly))
    return text if text.isalnum() else f"({text})"


def _show(poly: _Poly) -> Dim:
    number = _number(poly)
    if number is not None:
        return number
    out = ""
    for monomial in sorted(poly, key=lambda m: (-len(m), m)):
        coefficient = poly[monomial]
        size = abs(coefficient)
        term = "*".join([str(size), *monomial] if size != 1 or not monomial else monomial)
        if out:
            out += f" - {term}" if coefficient < 0 else f" + {term}"
        else:
            out = f"-{term}" if coefficient < 0 else term
    return out
