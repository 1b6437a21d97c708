"""Every check of the suite is the only one to find some faulty backend: none is there for show."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import fairlead_conformance
from conformance.tests.zoo import test_wheels
from conformance.tests.zoo._zoo import ZOO

ELSEWHERE = {
    "survives": "run/test_isolation.py",
    "loads": "run/test_import.py",
    "compared": "zoo/test_nothing.py",
    "known-failures": "run/test_known.py",
}
"""Checks of a run, and not of a case: by the test that has a backend for each."""


def checks() -> Iterator[str]:
    """The names that follow a status that is a failure, and those that are parameters."""
    for path in Path(fairlead_conformance.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(args=[*_, ast.Attribute(ast.Name("Status")), ast.Constant(str(check)), ast.AST()]):
                    yield check
                case ast.Call(args=[ast.Attribute(ast.Name("Status")), ast.Constant(str(check)), *_]):
                    yield check
                case ast.Call(func=ast.Name("_near"), args=[*_, ast.Constant(str(check)), ast.AST()]):
                    yield check
                case ast.Tuple([ast.Attribute(ast.Name("Status")), ast.Constant(str(check))]):
                    yield check
                case ast.keyword("check", ast.Constant(str(check))) if check:
                    yield check


NAMED_APART = {"kernels", "compilers", "processes", "refitted", "recompiled"}


def test_every_check_is_the_only_one_to_find_some_backend() -> None:
    soles = {fault.sole for fault in ZOO} | {*test_wheels.FAULTS, *test_wheels.COMPUTE} - {""}
    found = {*checks(), *NAMED_APART}
    assert {"values", "generator", "threads", "loads", "survives"} <= found
    assert sorted(found - soles - ELSEWHERE.keys()) == []
    assert sorted(soles - found) == []


def test_what_is_tested_elsewhere_is() -> None:
    folder = Path(__file__).parents[1]
    assert [name for name, file in ELSEWHERE.items() if not (folder / file).is_file()] == []
