"""Mutants of the reference interpreter: one operator, constant, flag or call of one rule changed at a time."""

from __future__ import annotations

import ast
import collections
import copy
import dataclasses
import functools
import importlib
import random
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.tests.engine.faulty import DTYPES, Faulty, Run, honest
from conformance.tests.zoo._changes import Changes
from conformance.tests.zoo._fault import Fault, Reference, Rule, by_rules
from conformance.tests.zoo._judged import aimed, killed
from fairlead.numpy import _table
from fairlead_conformance import Level, Result

_MODULES = tuple(name for name in _table._FAMILIES if name not in ("random", "control", "factories"))
"""The files that are mutated; random numbers are judged by their distribution alone, and bodies have no cases."""


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


@functools.cache
def _tree(module: str) -> ast.Module:
    file = importlib.import_module(f"fairlead.numpy._{module}").__file__
    assert file is not None
    return ast.parse(Path(file).read_text())


def mutants() -> list[Mutant]:
    """All mutants of functions that ops are computed by."""
    return [mutant for module in _MODULES for mutant in _of_module(module)]


def same() -> collections.Counter[str]:
    """How many changes are no mutants, by the rules of `SAME`."""
    found: collections.Counter[str] = collections.Counter()
    for module in _MODULES:
        for _, _, changes in _changed(module):
            found += changes.same
    return found


def _of_module(module: str) -> Iterator[Mutant]:
    for function, ops, changes in _changed(module):
        for index, (line, change) in enumerate(changes.found):
            yield Mutant(f"_{module}", line, function, change, index, ops)


def _changed(module: str) -> Iterator[tuple[str, tuple[str, ...], Changes]]:
    """Each function of a file that ops are computed by, with those, and what can be changed in it."""
    users = _users(module)
    for node in _tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in users:
            changes = Changes()
            changes.visit(copy.deepcopy(node))
            yield node.name, tuple(sorted(users[node.name])), changes


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
            tree.body[place] = Changes(mutant.index).visit(node)
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
    fault = Fault(mutant.name, "mutants", mutant.change, mutant.ops, lambda: _computing(by_rules(changed)), _computing)
    return killed(fault, Level.L3, most=most, seconds=seconds)


def _computing(run: Run = honest) -> Faulty:
    """A backend that takes complex numbers as well, for which there are rules."""
    return Reference(run, dtypes=(*DTYPES, "c64", "c128"))


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
