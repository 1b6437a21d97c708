"""Mutants of the reference interpreter: one operator, constant, flag or call of one rule changed at a time."""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import importlib
import random
import time
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.tests.zoo._fault import Fault, Reference, Rule, by_rules
from conformance.tests.zoo._judged import aimed, killed
from fairlead.numpy import _table
from fairlead_conformance import Level, Result

_MODULES = tuple(name for name in _table._FAMILIES if name not in ("random", "control", "factories"))
"""The files that are mutated; random numbers are judged by their distribution alone, and bodies have no cases."""

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


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: in which file and line, of which function, what became what, and the ops that it is in."""

    module: str
    line: int
    function: str
    change: str
    index: int
    ops: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.module}.py:{self.line} {self.function}: {self.change} (change {self.index})"


class _Changes(ast.NodeTransformer):
    """Counts the places that can be changed, and changes the one of a number. Annotations and defaults stay."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted = wanted
        self.found: list[tuple[int, str]] = []

    def _is_wanted(self, node: Any, change: str) -> bool:
        self.found.append((node.lineno, change))
        return len(self.found) - 1 == self.wanted

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = [self.visit(statement) for statement in node.body]
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
        """``strict`` guards against our own mistakes."""
        return node if node.arg == "strict" else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if (other := _OPERATORS.get(type(node.op))) and self._is_wanted(node, _became(node.op, other)):
            node.op = other()  # type: ignore[assignment]
        if isinstance(node.op, ast.Sub | ast.Div) and self._is_wanted(node, "operands exchanged"):
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
            if (other := _OPERATORS.get(type(op))) and self._is_wanted(node, _became(op, other)):
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
            if self._is_wanted(node, f"{node.value} became {changed}"):
                return ast.copy_location(ast.Constant(changed), node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        two = len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args)
        if two and self._is_wanted(node, "arguments exchanged"):
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


def _became(op: ast.AST, other: type[ast.AST]) -> str:
    return f"{type(op).__name__} became {other.__name__}"


@functools.cache
def _tree(module: str) -> ast.Module:
    file = importlib.import_module(f"fairlead.numpy._{module}").__file__
    assert file is not None
    return ast.parse(Path(file).read_text())


def mutants() -> list[Mutant]:
    """All mutants of functions that ops are computed by."""
    return [mutant for module in _MODULES for mutant in _of_module(module)]


def _of_module(module: str) -> Iterator[Mutant]:
    users = _users(module)
    for node in _tree(module).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        ops = tuple(sorted(users.get(node.name, ())))
        changes = _Changes()
        changes.visit(copy.deepcopy(node))
        for index, (line, change) in enumerate(changes.found if ops else ()):
            yield Mutant(f"_{module}", line, node.name, change, index, ops)


def _users(module: str) -> dict[str, set[str]]:
    """For each function and class of a file, the ops whose rules come to it."""
    found: dict[str, set[str]] = {}
    name = f"fairlead.numpy._{module}"
    for op, rule in _table.rules().items():
        if rule.__module__ == name:
            for reached in _reached(rule, name):
                found.setdefault(reached, set()).add(op)
    return found


def _reached(rule: Any, module: str) -> set[str]:
    """Names of the top level of a module that a function comes to, its own among them."""
    names: set[str] = set()
    waiting, seen = [rule], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or getattr(item, "__module__", None) != module:
            continue
        seen.add(id(item))
        names.add(item.__qualname__.split(".")[0])
        waiting += vars(item).values() if isinstance(item, type) else _called(item)
    return names


def _called(function: Any) -> list[Any]:
    if not isinstance(function, types.FunctionType):
        return []
    found = [cell.cell_contents for cell in function.__closure__ or ()]
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        found += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
        waiting += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found


def rules_of(mutant: Mutant) -> dict[str, Rule]:
    """The rules of the mutant's ops, from its file with the one change. Raises where it cannot be loaded."""
    tree = copy.deepcopy(_tree(mutant.module[1:]))
    for place, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == mutant.function:
            tree.body[place] = _Changes(mutant.index).visit(node)
    code = compile(ast.fix_missing_locations(tree), mutant.module, "exec")
    kept = dict(_table._RULES)
    try:
        exec(code, {"__name__": f"fairlead.numpy.{mutant.module}", "__builtins__": __builtins__})
        return {op: _table._RULES[op] for op in mutant.ops}
    finally:
        _table._RULES.clear()
        _table._RULES.update(kept)


def judged(mutant: Mutant, *, most: int = 120, seconds: float = 4.0) -> Result | str | None:
    """What kills it: a failure, or that it does not load; None where it survives."""
    try:
        changed = rules_of(mutant)
    except Exception as error:
        return f"does not load: {type(error).__name__}"
    fault = Fault(mutant.name, "mutants", mutant.change, mutant.ops, lambda: Reference(by_rules(changed)))
    return killed(fault, Level.L3, most=most, seconds=seconds)


def sample(count: int, seed: int = 0) -> list[Mutant]:
    """Some mutants of ops that there are cases of, the same at every call."""
    chosen = [mutant for mutant in mutants() if aimed(mutant.ops, Level.L3)]
    return sorted(
        random.Random(seed).sample(chosen, min(count, len(chosen))), key=lambda m: (m.module, m.line, m.index)
    )


def run(wanted: list[Mutant], log: Path, seconds: float) -> None:
    """Judge mutants within a time, a line of the log for each; those that the log has are not judged again."""
    end, known = time.monotonic() + seconds, read(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as lines:
        for mutant in wanted:
            if mutant.name in known or time.monotonic() > end:
                continue
            found = judged(mutant)
            told = found if isinstance(found, str) else f"{found.status} {found.id}" if found else SURVIVES
            print(f"{mutant.name}\t{told}", file=lines, flush=True)


def read(log: Path) -> dict[str, str]:
    """What became of each mutant, by its name."""
    if not log.exists():
        return {}
    return dict(line.split("\t", 1) for line in log.read_text().splitlines())


SURVIVES = "SURVIVES"
