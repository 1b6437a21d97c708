"""The normal form of integer expressions: polynomials whose atoms are symbols and the functions // % min max."""

from __future__ import annotations

import ast
import re
from typing import TypeAlias

from fairlead.errors import IRFormatError

Dim: TypeAlias = int | str
"""A dimension: an integer, or an expression in normal form."""

_Monomial: TypeAlias = tuple[str, ...]
_Poly: TypeAlias = dict[_Monomial, int]

# An expression may come from a file that nobody vouches for: these bound what reading one can cost.
MAX_TEXT = 4096
_MAX_TERMS = 1024
_MAX_DEGREE = 32


def normal_form(tree: ast.expr, text: str) -> Dim:
    """The normal form of a parsed expression; ``text`` is what the error shows if it is none."""
    try:
        shown = _show(_poly(tree, text))
    except RecursionError as error:
        raise no_dimension(text, "it is nested too deeply") from error
    if isinstance(shown, str) and len(shown) > MAX_TEXT:
        raise no_dimension(text, f"its normal form is longer than {MAX_TEXT} characters")
    return shown


def no_dimension(text: object, why: str) -> IRFormatError:
    """The error for text that is not a dimension."""
    return IRFormatError(
        f"{str(text)[:80]!r} is not a dimension expression: {why}",
        where="fairlead.ir.dims",
        next="write integers, symbols, + - * // % and min(...), max(...)",
    )


def _poly(node: ast.expr, text: str) -> _Poly:
    match node:
        case ast.Constant(value=bool()):
            raise no_dimension(text, "a bool is no dimension")
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
    raise no_dimension(text, "it has another operator, name or number")


def _plus(a: _Poly, b: _Poly) -> _Poly:
    out = dict(a)
    for monomial, coefficient in b.items():
        out[monomial] = out.get(monomial, 0) + coefficient
    return {m: c for m, c in out.items() if c}


def _scale(a: _Poly, k: int) -> _Poly:
    return {m: c * k for m, c in a.items()}


def _times(a: _Poly, b: _Poly, text: str) -> _Poly:
    if len(a) * len(b) > _MAX_TERMS or _degree(a) + _degree(b) > _MAX_DEGREE:
        raise no_dimension(text, f"it has more than {_MAX_TERMS} terms or a degree above {_MAX_DEGREE}")
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
        raise no_dimension(text, "it divides by zero")
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
        inner = _quotient(a)
        if inner is not None:  # (x//m)//n = x//(m*n), for floors of quotients by positive numbers
            return _floordiv(_poly(ast.parse(inner[1], mode="eval").body, text), {(): int(inner[2]) * nb}, text)
    return {(f"({_operand(a)}//{_operand(b)})",): 1}


_QUOTIENT = re.compile(r"\((.+)//([0-9]+)\)")


def _quotient(a: _Poly) -> re.Match[str] | None:
    """The parts of a polynomial that is one quotient by a number."""
    ((monomial, coefficient), *rest) = a.items()
    return _QUOTIENT.fullmatch(monomial[0]) if not rest and coefficient == 1 and len(monomial) == 1 else None


def _mod(a: _Poly, b: _Poly, text: str) -> _Poly:
    na, nb = _number(a), _number(b)
    if nb == 0:
        raise no_dimension(text, "it divides by zero")
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
