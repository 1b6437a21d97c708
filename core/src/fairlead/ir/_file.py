"""``.fir`` files: a module, and if wanted its constants, in a deterministic zip that is safe to read from anyone."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import TypeAlias, TypeVar

import msgspec

from fairlead.errors import ArgumentError
from fairlead.ir._locations import encode_locations, with_locations
from fairlead.ir._messagepack import malformed
from fairlead.ir._model import IR_VERSION, Graph, Kind, Module, OpUse
from fairlead.ir._module import FORMAT, check_version, down_to, finish, module
from fairlead.ir._tensors import TensorData
from fairlead.ir._verify import verify
from fairlead.ir._weights import Constants, Specification, Weights, pieces, specify
from fairlead.ir._wire import WireGraph, decode_wire, pack_graph, unpack_graph
from fairlead.ir._zip import Pieces, read_zip, write_zip

Path: TypeAlias = "str | os.PathLike[str]"
T = TypeVar("T")

_MANIFEST, _GRAPHS, _LOCATIONS = "manifest.json", "graphs.msgpack", "locations.msgpack"
_WEIGHTS, INLINE = "weights.json", "weights.safetensors"
# How large an entry may be, in bytes; weights are as large as the file is.
_LARGEST = {_MANIFEST: 1 << 26, _GRAPHS: 1 << 30, _LOCATIONS: 1 << 28, _WEIGHTS: 1 << 28, INLINE: 1 << 62}


class _Header(msgspec.Struct, frozen=True):
    """The part of the manifest that every version of the format has."""

    format: str
    ir_version: tuple[int, int]


class _GraphName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: Kind


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    ir_version: tuple[int, int]
    graphs: tuple[_GraphName, ...]
    ops: dict[str, OpUse]
    producer: dict[str, str]
    weights: Weights


@dataclasses.dataclass(frozen=True)
class File:
    """What a ``.fir`` file holds: a module, and how its constants are kept."""

    module: Module
    weights: Weights
    _constants: Constants

    @property
    def graph(self) -> Graph:
        """The only graph of a file that has one; a ValueError otherwise."""
        return self.module.graph

    def constants(self, graph: int = 0, *, limit: int = 1 << 30, check: bool = True) -> dict[int, TensorData]:
        """The constants of a graph by input: those kept in the file in its memory map, without a copy.

        A small file can ask for large random tensors: where they take more than ``limit`` bytes, an `IRFormatError`.
        Another file with weights that is missing or has changed is one too; ``check=False`` looks at its size only,
        and does not read all of it.
        """
        return self._constants.of(graph, limit, check)


def write(
    path: Path,
    content: Graph | Module,
    constants: Mapping[int, object] | Mapping[tuple[int, int], object] | None = None,
    *,
    weights: Weights = "inline",
    locations: bool = True,
    opset: int | None = None,
    ir_version: tuple[int, int] = IR_VERSION,
) -> None:
    """Write a graph or module, and the tensors in ``constants``: by input index, or by graph and input index.

    ``weights`` says what becomes of the tensors (torch, NumPy or `TensorData`): ``inline`` keeps them (one that several
    inputs share once), ``none`` leaves them out, ``random`` keeps only a distribution that resembles each one. A
    `StoredTensor` stays in its own file. ``locations=False`` leaves out source lines, which hold paths of the machine.
    ``opset`` and ``ir_version`` write for an older reader. The same arguments give the same bytes, and a file that is
    there is replaced as a whole.

    Raises `VerificationError` for a graph that breaks a rule, and `ArgumentError` for constants that do not fit it and
    for what an older version cannot say.
    """
    if ir_version != IR_VERSION:
        raise _bad_version(ir_version)
    whole = verify(content if isinstance(content, Module) else module(content))
    whole = whole if opset is None else down_to(whole, opset)
    target = pathlib.Path(path)
    keyed: dict[int | tuple[int, int], object] = {**(constants or {})}  # type: ignore[dict-item]
    specification, kept = specify(whole, keyed, weights, target.parent)
    lines = encode_locations(whole) if locations else b""
    _replace(target, entries_of(whole, specification, kept, weights, lines))


def entries_of(
    whole: Module, specification: Specification, kept: Mapping[str, TensorData], weights: Weights, lines: bytes
) -> dict[str, Pieces]:
    """The entries of a file, in their order; those that hold nothing are left out."""
    names = tuple([_GraphName(g.name, g.kind) for g in whole.graphs])
    manifest = _Manifest(FORMAT, whole.ir_version, names, whole.ops, whole.producer, weights)
    entries: dict[str, Pieces] = {_MANIFEST: [msgspec.json.encode(manifest)]}
    entries[_GRAPHS] = [msgspec.msgpack.encode([pack_graph(g) for g in whole.graphs])]
    if lines:
        entries[_LOCATIONS] = [lines]
    if specification.tensors:
        entries[_WEIGHTS] = [msgspec.json.encode(specification)]
    if kept:
        entries[INLINE] = pieces(kept)
    return entries


def read(path: Path) -> File:
    """Read what `write` wrote, and check all of it before anything is built from it.

    Weights are mapped, not read: a file of gigabytes opens in milliseconds. Leave it as it is while its tensors are in
    use; `write` does, which replaces files. Safe for files from anyone: it takes memory and time in proportion to the
    file. Raises `IRVersionError` for a newer format or op, `IRFormatError` for a malformed file, `VerificationError`
    for a graph that breaks a rule, and OSError where the file cannot be opened.
    """
    where = os.fspath(path)
    entries = read_zip(path, _LARGEST, INLINE)
    manifest = _manifest(*_take(entries, _MANIFEST, where))
    data, entry = _take(entries, _GRAPHS, where)
    graphs = tuple([unpack_graph(g, entry) for g in decode_wire(data, list[WireGraph], entry)])
    if manifest.graphs != tuple([_GraphName(g.name, g.kind) for g in graphs]):
        raise malformed("the manifest names other graphs", where)
    whole = Module(graphs, manifest.ops, manifest.ir_version, manifest.producer)
    if _LOCATIONS in entries:
        whole = with_locations(whole, *_take(entries, _LOCATIONS, where))
    whole = finish(whole, where)
    specification, inline = Specification(), entries.pop(INLINE, None)
    if _WEIGHTS in entries:
        data, entry = _take(entries, _WEIGHTS, where)
        specification = _parse(data, Specification, entry)
    return File(whole, manifest.weights, Constants(whole, specification, inline, where))


def _replace(target: pathlib.Path, entries: Mapping[str, Pieces]) -> None:
    """Write beside the target, then put it in its place: whoever has mapped the old file keeps it."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            write_zip(file, entries, INLINE)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _bad_version(version: tuple[int, int]) -> ArgumentError:
    return ArgumentError(
        "IR version {} cannot be written".format(".".join(map(str, version))),
        where="fairlead.ir.write",
        next="this Fairlead writes {}.{}, the only version so far".format(*IR_VERSION),
    )


def _take(entries: dict[str, memoryview], name: str, where: str) -> tuple[memoryview, str]:
    """The bytes of an entry, which is then done with, and what to call it in a message."""
    if name not in entries:
        raise malformed(f"the entry {name} is missing", where)
    return entries.pop(name), f"{where}, entry {name}"


def _parse(data: memoryview, type_: type[T], where: str) -> T:
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise malformed(str(error), where) from error


def _manifest(data: memoryview, where: str) -> _Manifest:
    header = _parse(data, _Header, where)
    check_version(header.format, header.ir_version, where)
    return _parse(data, _Manifest, where)
