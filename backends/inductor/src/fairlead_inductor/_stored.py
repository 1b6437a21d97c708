"""What the C++ that Inductor generates was compiled to, as bytes, for a process that generates the same.

Torch has no means to store one program: its cache has pickles of all of them. But it names each library by a hash of
the C++ and of the compiler's command, and compiles none that lies in its cache: so libraries that are laid there spare
a process the C++ compiler, and cannot be taken for others. Before its first kernel torch compiles a few more, to see
which instructions the compiler and the processor have.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
from torch._inductor import codecache

from fairlead.errors import ArtifactFormatError
from fairlead.ir import Graph, fingerprint
from fairlead_inductor._patched import in_this_thread

__all__ = ["lay_out_libraries", "noting_libraries", "packed"]

_KERNELS, _CHECK = ".main.cpp", ".cpp"

_NAME = re.compile(r"c[a-z2-7]+(\.main)?\.so")

_asked_for: dict[str, tuple[str, ...]] = {}
"""By the path of generated Python, which torch runs once in a process, the libraries that it names."""

_checks: set[str] = set()
"""Those that torch tried instructions with, which it does once in a process."""


class _Stored(msgspec.Struct, frozen=True):
    """Libraries by their name in torch's cache, and the fingerprint of the graph that they were generated for."""

    graph: str
    libraries: dict[str, bytes]


@contextlib.contextmanager
def noting_libraries(names: set[str]) -> Iterator[None]:
    """Have ``names`` take those of the libraries of all code that this thread loads within, generated now or before."""
    named: list[str] = []

    def write(torchs: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **how: Any) -> Any:
            key, path = torchs(*args, **how)
            if path.endswith(_KERNELS):
                named.append(f"{key}.main.so")
            elif path.endswith(_CHECK):
                _checks.add(f"{key}.so")
            return key, path

        return noted

    def load(torchs: Callable[..., Any]) -> Callable[..., Any]:
        def noted(key: str, path: str, *args: Any, **how: Any) -> Any:
            named.clear()
            module = torchs(key, path, *args, **how)
            names.update(_asked_for.setdefault(path, tuple(named)))
            return module

        return noted

    with (
        in_this_thread(codecache, "write", write),
        in_this_thread(codecache.PyCodeCache, "load_by_key_path", load),
    ):
        yield


def packed(graph: Graph, names: Collection[str]) -> bytes:
    """The libraries of these names. One that is no longer in torch's cache is left out: it is compiled anew."""
    libraries = {}
    for name in sorted({*names, *_checks} if names else ()):
        with contextlib.suppress(FileNotFoundError):
            libraries[name] = _path(name).read_bytes()
    return msgspec.msgpack.encode(_Stored(fingerprint(graph), libraries))


def lay_out_libraries(data: bytes, graph: Graph) -> None:
    """Put what `packed` gave into torch's cache; an `ArtifactFormatError` where it was given for another graph."""
    try:
        stored = msgspec.msgpack.decode(data, type=_Stored)
    except msgspec.DecodeError:
        stored = None
    if stored is None or stored.graph != fingerprint(graph) or not all(map(_NAME.fullmatch, stored.libraries)):
        raise ArtifactFormatError(
            "the bytes are not what inductor stored of this graph",
            where=f"{len(data)} bytes, graph @{graph.name}",
            next="delete them and compile again",
        )
    for name, library in stored.libraries.items():
        path = _path(name)
        if not path.exists():
            codecache.write_atomic(str(path), library, make_dirs=True)


def _path(name: str) -> Path:
    """Where torch's cache has a library."""
    key, _, kind = name.partition(".")
    return Path(codecache.get_path(key, kind)[2])
