"""Programs as bytes: the machine code that XLA made, as jax stores it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeAlias

import jax
import msgspec
import torch
from jax.experimental import serialize_executable

from fairlead_openxla._devices import jax_device
from fairlead_openxla._lower import Compiled
from fairlead_openxla._releases import loaded_onto
from fairlead_openxla._settings import lowering

__all__ = ["Programs", "Sources", "dumped", "loaded"]

Programs: TypeAlias = Mapping[tuple[int, ...], Compiled]
"""By the sizes that they were compiled for."""

Sources: TypeAlias = tuple[tuple[int, int | None], ...]
"""Where a call finds each of the sizes: a place, and a dimension where it is not a number."""

_ERRORS: dict[str, type[Exception]] = {e.__name__: e for e in (IndexError, RuntimeError, ZeroDivisionError)}


class _Program(msgspec.Struct, frozen=True, array_like=True):
    """What was compiled for one set of sizes; ``checks`` names the errors that its last result stands for."""

    sizes: tuple[int, ...]
    code: bytes
    arguments: int
    results: int
    checks: tuple[tuple[str, str], ...]


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """Programs, and what they depend on that `fairlead.artifacts` does not compare.

    A graph's fingerprint leaves open which size comes first; XLA's flags may be set in the environment.
    """

    sources: Sources
    flags: str
    programs: tuple[_Program, ...]


def dumped(programs: Programs, sources: Sources) -> bytes:
    """The programs, without weights."""
    return msgspec.msgpack.encode(_Stored(sources, _flags(), tuple(_stored(*item) for item in programs.items())))


def loaded(data: bytes, sources: Sources, device: torch.device) -> dict[tuple[int, ...], Compiled]:
    """What `dumped` gave. jax unpickles it, which is safe only for bytes that are known to be from there."""
    stored = msgspec.msgpack.decode(data, type=_Stored)
    if stored.sources != sources:
        raise ValueError(f"the programs take their sizes from {stored.sources}, and the graph has them in {sources}")
    if stored.flags != _flags():
        raise ValueError(f"the programs were compiled with XLA_FLAGS={stored.flags!r}, and now it is {_flags()!r}")
    with lowering(device):
        return {program.sizes: _loaded(program, device) for program in stored.programs}


def _stored(sizes: tuple[int, ...], program: Compiled) -> _Program:
    code, arguments, results = serialize_executable.serialize(program.run)
    checks = tuple((error.__name__, text) for error, text in program.checks)
    return _Program(sizes, code, arguments.num_leaves, results.num_leaves, checks)


def _loaded(program: _Program, device: torch.device) -> Compiled:
    arguments = jax.tree_util.tree_structure(((0,) * program.arguments, {}))
    results = jax.tree_util.tree_structure([0] * program.results)
    run = loaded_onto(jax_device(device), program.code, arguments, results)
    return Compiled(run, tuple((_ERRORS[error], text) for error, text in program.checks))


def _flags() -> str:
    return os.environ.get("XLA_FLAGS", "")
