"""Every public name is meant to be public, and no public signature changes unnoticed.

``public_api.txt`` holds all of them, a line each. After a change that is meant, ``make api`` writes it anew, and the
change is a diff that a reviewer sees.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from fairlead_conformance._families import FAMILIES, family
from fairlead_conformance._families import _listed as cases
from fairlead_conformance._report._schema import FILE, generated

REPOSITORY = Path(__file__).parents[1]

FROZEN = Path(__file__).with_name("public_api.txt")

SCHEMA = REPOSITORY / "conformance/src/fairlead_conformance/_report" / FILE
"""The published schema of reports, which the structs decide as well."""

PACKAGES = ("fairlead", "fairlead_conformance", "fairlead_onnx")


def public_modules() -> list[str]:
    """The packages and all modules in them no part of whose name starts with an underscore."""
    found = list(PACKAGES)
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        found += [m.name for m in pkgutil.walk_packages(path, f"{package}.", onerror=lambda name: None)]
    return sorted(name for name in found if not any(part.startswith("_") for part in name.split(".")))


def defined(module: ModuleType) -> set[str]:
    """The names that the module itself binds, without private ones; in a package, also what it takes from its parts."""
    names: set[str] = set()
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.ImportFrom(module=str(source), names=aliases) if hasattr(module, "__path__"):
                names |= {a.asname or a.name for a in aliases if source.startswith("fairlead")}
    variables = {name for name in names if type(vars(module).get(name)).__name__ in {"TypeVar", "ParamSpec"}}
    return {name for name in names - variables if not name.startswith("_")}


@pytest.mark.parametrize("name", public_modules())
def test_a_public_module_lists_what_it_defines(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [n for n in module.__all__ if not hasattr(module, n)] == []
    assert defined(module) - set(module.__all__) == set()


@pytest.mark.parametrize("name", public_modules())
def test_everything_public_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    described = {n: inspect.getdoc(v) for n in module.__all__ if callable(v := getattr(module, n))}
    assert [n for n, doc in described.items() if not doc] == []


def test_public_signatures_are_as_written_down() -> None:
    assert list(signatures()) == FROZEN.read_text("utf-8").splitlines(), "run `make api` if this is meant"


def signatures() -> Iterator[str]:
    """One line for each public name and each public member of a class."""
    for module in public_modules():
        found = importlib.import_module(module)
        yield f"module {module}"
        for name in sorted(found.__all__):
            yield from (f"  {line}" for line in described(name, getattr(found, name)))


def described(name: str, value: object) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield f"{name}: module"
    elif isinstance(value, type):
        yield from described_class(name, value)
    elif inspect.isroutine(value):
        yield f"{name}{signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def described_class(name: str, cls: type) -> Iterator[str]:
    yield f"class {name}({', '.join(base.__name__ for base in cls.__bases__)})"
    if issubclass(cls, enum.Enum):
        yield from (f"  {member.name} = {member.value!r}" for member in cls)
    elif fields := getattr(cls, "_fields", getattr(cls, "__struct_fields__", ())):
        yield from (f"  {field}" for field in described_fields(cls, fields))
    for member, value in sorted(vars(cls).items()):
        if isinstance(value, property):
            yield f"  {member}: {inspect.get_annotations(value.fget)['return']}"  # type: ignore[arg-type]
        elif isinstance(value, (classmethod, staticmethod)) and not member.startswith("_"):
            yield f"  {member}{signature(value.__func__)} ({type(value).__name__})"
        elif inspect.isfunction(value) and (member == "__call__" or is_constructor(member, cls) or member[0] != "_"):
            yield f"  {member}{signature(value)}"


def is_constructor(member: str, cls: type) -> bool:
    return member == "__init__" and not getattr(cls, "_is_protocol", False)


def described_fields(cls: type, names: tuple[str, ...]) -> Iterator[str]:
    annotations: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        annotations |= inspect.get_annotations(base)
    defaults = (msgspec.NODEFAULT,) * len(names) + getattr(cls, "__struct_defaults__", ())
    for name, default in zip(names, defaults[-len(names) :], strict=True):
        value = default.factory() if hasattr(default, "factory") else default
        kind = getattr(annotations[name], "__forward_arg__", annotations[name])
        yield f"{name}: {kind}" + ("" if value is msgspec.NODEFAULT else f" = {written(value)}")


def written(value: object) -> str:
    """The same text in every process: sets have no order of their own."""
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, (set, frozenset)) else repr(value)


class Annotation(str):
    """An annotation as the source has it, without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(function: Callable[..., object]) -> str:
    found = inspect.signature(function)
    parameters = [p.replace(annotation=unquoted(p.annotation)) for p in found.parameters.values()]
    return str(found.replace(parameters=parameters, return_annotation=unquoted(found.return_annotation)))


def unquoted(annotation: object) -> object:
    return Annotation(annotation) if isinstance(annotation, str) else annotation


if __name__ == "__main__":
    FROZEN.write_text("".join(f"{line}\n" for line in signatures()), "utf-8")
    SCHEMA.write_text(generated(), "utf-8")
    cases.FILE.write_bytes(cases.written(case for name in FAMILIES for case in family(name).cases()))
