"""A compiled program as bytes: the calls of the virtual machine, and the kernels as LLVM's bitcode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Shape
from fairlead_tvm._schedule import Schedule

__all__ = ["Stored", "dumped", "loaded"]

_ERRORS: dict[str, type[Exception]] = {e.__name__: e for e in (IndexError, RuntimeError, ZeroDivisionError)}


@dataclass(frozen=True, slots=True)
class Stored:
    """A compiled graph; ``checks`` and ``shapes`` are those of `Written`, ``schedules`` what `write` was given."""

    program: Any
    checks: tuple[tuple[type[Exception], str], ...]
    shapes: tuple[Shape | None, ...]
    schedules: Mapping[int, Schedule]


class _Bytes(msgspec.Struct, frozen=True, array_like=True):
    calls: bytes
    code: bytes
    checks: tuple[tuple[str, str], ...]
    shapes: tuple[tuple[int | str, ...] | None, ...]
    schedules: dict[int, Schedule]


def dumped(stored: Stored) -> bytes:
    """The program, without weights."""
    checks = tuple((error.__name__, text) for error, text in stored.checks)
    return msgspec.msgpack.encode(_Bytes(*t.stored(stored.program), checks, stored.shapes, dict(stored.schedules)))


def loaded(data: bytes) -> Stored:
    """What `dumped` gave. Its code runs, which is safe only for bytes that are known to be from there."""
    found = msgspec.msgpack.decode(data, type=_Bytes)
    checks = tuple((_ERRORS[error], text) for error, text in found.checks)
    return Stored(t.loaded(found.calls, found.code), checks, found.shapes, found.schedules)
