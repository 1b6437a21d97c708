"""Whether an object fulfils the backend contract, member by member, before anything of it is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fairlead._messages import cause
from fairlead.backend import ACCEPTED_API_VERSIONS, Backend, Capabilities, Options
from fairlead.errors import BackendContractError, BackendVersionError

_METHODS = {"probe": 0, "supports": 1, "compile": 3}
"""The methods of a backend and how many positional arguments core passes to each."""


def check(backend: object, name: str | None, where: str, upgrade: str) -> Backend[Any]:
    """The same object, known to fulfil the contract.

    ``name`` is what its entry point calls it, None where it has none; ``upgrade`` is the command that brings a newer
    wheel. Raises `BackendVersionError` before looking at any other member, since another version may have others, and
    `BackendContractError` that lists every fault.
    """
    version = _member(backend, "api_version")
    if isinstance(version, int) and version not in ACCEPTED_API_VERSIONS:
        accepted = ", ".join(map(str, ACCEPTED_API_VERSIONS))
        raise BackendVersionError(
            f"the backend is written for version {version} of the contract; this core accepts {accepted}",
            where=where,
            next="pip install --upgrade fairlead" if version > max(ACCEPTED_API_VERSIONS) else upgrade,
        )
    if faults := list(_faults(backend, name)):
        raise BackendContractError(
            "not a backend: " + "; ".join(faults),
            where=where,
            next="fulfil fairlead.backend.Backend; see docs/backends.md",
        )
    return backend  # type: ignore[return-value]  # every member was just checked, at run time


def _faults(backend: object, name: str | None) -> Iterator[str]:
    if isinstance(backend, type):
        yield f"it is the class {backend.__name__}, should be an instance of it"
        return
    found = _member(backend, "name")
    if not isinstance(found, str) or not found:
        yield _wrong("name", found, "a string")
    elif name is not None and found != name:
        yield f"name is {found!r}, its entry point says {name!r}"
    version = _member(backend, "api_version")
    if not isinstance(version, int):
        yield _wrong("api_version", version, "an int")
    capabilities = _member(backend, "capabilities")
    if not isinstance(capabilities, Capabilities):
        yield _wrong("capabilities", capabilities, "a fairlead.backend.Capabilities")
    yield from _option_faults(_member(backend, "options_type"))
    for method, count in _METHODS.items():
        yield from _method_faults(_member(backend, method), method, count)


def _option_faults(options_type: object) -> Iterator[str]:
    if not isinstance(options_type, type) or not issubclass(options_type, Options):
        yield _wrong("options_type", options_type, "a subclass of fairlead.backend.Options")
        return
    for field in msgspec.structs.fields(options_type):
        if field.required:
            yield f"option {field.name!r} has no default"


def _method_faults(method: object, name: str, count: int) -> Iterator[str]:
    if not callable(method):
        yield _wrong(name, method, "a method")
    elif not _accepts(method, count):
        yield f"{name}{inspect.signature(method)} is called with {count} positional argument{'' if count == 1 else 's'}"


def _accepts(method: Callable[..., object], count: int) -> bool:
    try:
        inspect.signature(method).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a compiled callable without a signature: believed
        return True
    return True


class _Unreadable:
    """Stands for a member that cannot be read: it fails every check, and its text says why."""

    def __init__(self, error: Exception) -> None:
        self.text = "missing" if isinstance(error, AttributeError) else f"a property that raises {cause(error)}"


def _member(backend: object, name: str) -> object:
    try:
        return getattr(backend, name)
    except Exception as error:  # it does not exist, or is a property of the vendor's that raises
        return _Unreadable(error)


def _wrong(name: str, found: object, expected: str) -> str:
    shown = found.text if isinstance(found, _Unreadable) else f"{found!r:.60} ({type(found).__name__})"
    return f"{name} is {shown}, should be {expected}"
