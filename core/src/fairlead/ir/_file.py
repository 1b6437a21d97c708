"""``.fir`` files: one graph, and if wanted its constants, in a deterministic zip that is safe to read from anyone."""

from __future__ import annotations

import dataclasses
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, TypeVar

import msgspec

from fairlead.errors import ArgumentError, IRFormatError
from fairlead.ir._locations import encode_locations, with_locations
from fairlead.ir._messagepack import malformed
from fairlead.ir._model import DType, Graph, Module, OpUse, TensorType
from fairlead.ir._module import FORMAT, check_version, finish, module
from fairlead.ir._random import Distribution, describe, draw, fits
from fairlead.ir._safetensors import read_tensors, write_tensors
from fairlead.ir._tensors import TensorData, tensor_data
from fairlead.ir._verify import verify
from fairlead.ir._wire import WireGraph, decode_wire, pack_graph, unpack_graph

Path: TypeAlias = "str | os.PathLike[str]"
Weights: TypeAlias = Literal["inline", "none", "random"]
T = TypeVar("T")

_MANIFEST, _GRAPHS, _LOCATIONS = "manifest.json", "graphs.msgpack", "locations.msgpack"
_INLINE, _RANDOM = "weights.safetensors", "weights.json"
# How large an entry may be, in bytes; weights are as large as the file is.
_LARGEST = {_MANIFEST: 1 << 26, _GRAPHS: 1 << 28, _LOCATIONS: 1 << 28, _RANDOM: 1 << 24, _INLINE: 1 << 62}
_SEED = 0


class _Header(msgspec.Struct, frozen=True):
    """The part of the manifest that every version of the format has."""

    format: str
    ir_version: tuple[int, int]


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    ir_version: tuple[int, int]
    graphs: tuple[str, ...]
    ops: dict[str, OpUse]
    producer: dict[str, str]
    weights: Weights


class _RandomTensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: int
    distribution: Distribution


class _RandomWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seed: int
    tensors: tuple[_RandomTensor, ...]


@dataclasses.dataclass(frozen=True)
class File:
    """What a ``.fir`` file holds: a module, and how its constants are kept."""

    module: Module
    weights: Weights
    _inline: Mapping[int, TensorData]
    _random: _RandomWeights
    _where: str

    @property
    def graph(self) -> Graph:
        """The only graph of a file that has one; a ValueError otherwise."""
        return self.module.graph

    def constants(self, *, limit: int = 1 << 30) -> dict[int, TensorData]:
        """The constants by graph input, as `write` was given them or drawn from their random specification.

        A small file can ask for large random tensors: where they take more than ``limit`` bytes, an `IRFormatError`.
        """
        types = _static_types(self.module.graphs[0])
        size = sum(_size(*types[t.input]) for t in self._random.tensors)
        if size > limit:
            raise IRFormatError(
                f"its random weights take {size} bytes, more than the limit of {limit}",
                where=self._where,
                next=f"pass constants(limit={size}) if you trust the file",
            )
        seed = self._random.seed
        drawn = {t.input: draw(t.distribution, seed, t.input, *types[t.input]) for t in self._random.tensors}
        return {**self._inline, **drawn}


def write(
    path: Path,
    content: Graph | Module,
    constants: Mapping[int, object] | None = None,
    *,
    weights: Weights = "inline",
    locations: bool = True,
) -> None:
    """Write a graph or module, and the tensors of inputs of its first graph that are in ``constants``, by input index.

    ``weights`` says what becomes of the tensors (torch, NumPy or `TensorData`): ``inline`` keeps them, ``none`` leaves
    them out, ``random`` keeps only a distribution that resembles each one. ``locations=False`` leaves out source lines,
    which hold paths of the machine. The same arguments give the same bytes.

    Raises `VerificationError` for a graph that breaks a rule, and `ArgumentError` for constants that do not fit it.
    """
    whole = verify(content if isinstance(content, Module) else module(content))
    tensors = {} if weights == "none" else _checked(whole.graphs[0], constants or {})
    names = tuple(g.name for g in whole.graphs)
    manifest = _Manifest(FORMAT, whole.ir_version, names, whole.ops, whole.producer, weights)
    lines = encode_locations(whole) if locations else b""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _MANIFEST, [msgspec.json.encode(manifest)])
        _add(archive, _GRAPHS, [msgspec.msgpack.encode([pack_graph(g) for g in whole.graphs])])
        if lines:
            _add(archive, _LOCATIONS, [lines])
        if weights == "inline":
            _add(archive, _INLINE, write_tensors({f"in{i}": t for i, t in tensors.items()}))
        if weights == "random":
            specification = _RandomWeights(_SEED, tuple(_RandomTensor(i, describe(t)) for i, t in tensors.items()))
            _add(archive, _RANDOM, [msgspec.json.encode(specification)])


def read(path: Path) -> File:
    """Read what `write` wrote, and check all of it before anything is built from it.

    Safe for files from anyone: it takes memory and time in proportion to the file. Raises `IRVersionError` for a newer
    format, `IRFormatError` for a malformed file, `VerificationError` for a graph that breaks a rule, and OSError where
    the file cannot be opened.
    """
    where = os.fspath(path)
    entries = _entries(path, where)
    manifest = _manifest(_take(entries, _MANIFEST, where))
    data, entry = _take(entries, _GRAPHS, where)
    graphs = tuple([unpack_graph(g, entry) for g in decode_wire(data, list[WireGraph], entry)])
    if manifest.graphs != tuple(g.name for g in graphs):
        raise malformed("the manifest names other graphs", where)
    whole = Module(graphs, manifest.ops, manifest.ir_version, manifest.producer)
    if _LOCATIONS in entries:
        whole = with_locations(whole, *_take(entries, _LOCATIONS, where))
    whole = finish(whole, where)
    graph = whole.graphs[0]
    inline: dict[int, TensorData] = {}
    random = _RandomWeights(_SEED, ())
    if manifest.weights == "inline":
        inline = _read_inline(graph, *_take(entries, _INLINE, where))
    if manifest.weights == "random":
        random = _read_random(graph, *_take(entries, _RANDOM, where))
    if entries:
        raise malformed(f"the entry {min(entries)} does not belong in this file", where)
    return File(whole, manifest.weights, inline, random, where)


def _add(archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes | memoryview]) -> None:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = 0o644 << 16
    with archive.open(info, "w", force_zip64=name == _INLINE) as entry:
        for piece in pieces:
            entry.write(piece)


def _checked(graph: Graph, constants: Mapping[int, object]) -> dict[int, TensorData]:
    types = _static_types(graph)
    tensors = {}
    for index, tensor in sorted(constants.items()):
        if index not in types:
            raise _bad_constant(index, "the graph has no such input of static shape")
        try:
            tensors[index] = data = tensor_data(tensor)
        except TypeError as error:
            raise _bad_constant(index, str(error)) from error
        dtype, shape = types[index]
        if (data.dtype, data.shape) != (dtype, shape):
            raise _bad_constant(index, f"it is {data.dtype}{list(data.shape)}, the input is {dtype}{list(shape)}")
    return tensors


def _bad_constant(index: int, why: str) -> ArgumentError:
    return ArgumentError(
        f"constant {index} cannot be written: {why}",
        where="fairlead.ir.write",
        next="pass tensors by the index of the graph input that they are the value of",
    )


def _static_types(graph: Graph) -> dict[int, tuple[DType, tuple[int, ...]]]:
    """Element type and shape of each input that a constant can be the value of."""
    types = {}
    for index, type_ in enumerate(i.value.type for i in graph.inputs):
        if isinstance(type_, TensorType) and type_.is_static:
            types[index] = (type_.dtype, tuple(d for d in type_.shape if isinstance(d, int)))
    return types


def _size(dtype: DType, shape: tuple[int, ...]) -> int:
    size = dtype.itemsize
    for d in shape:
        size *= d
    return size


# What zipfile raises over malformed archives; it documents the first only.
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, ValueError, EOFError, OSError,
)  # fmt: skip


def _entries(path: Path, where: str) -> dict[str, bytes]:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                return {info.filename: archive.read(info) for info in _checked_infos(archive, size, where)}
        except _ZIP_ERRORS as error:
            raise malformed(f"not a .fir file: {error or type(error).__name__}", where) from error


def _checked_infos(archive: zipfile.ZipFile, size: int, where: str) -> Iterator[zipfile.ZipInfo]:
    seen: set[str] = set()
    for info in archive.infolist():
        name = info.filename
        if name not in _LARGEST or name in seen:
            raise malformed(f"an unknown or repeated entry {name[:80]!r}", where)
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise malformed(f"the entry {name} is compressed or encrypted", where)
        if info.file_size != info.compress_size or info.file_size > min(size, _LARGEST[name]):
            raise malformed(f"the entry {name} claims {info.file_size} bytes", where)
        seen.add(name)
        yield info


def _take(entries: dict[str, bytes], name: str, where: str) -> tuple[bytes, str]:
    """The bytes of an entry, which is then done with, and what to call it in a message."""
    if name not in entries:
        raise malformed(f"the entry {name} is missing", where)
    return entries.pop(name), f"{where}, entry {name}"


def _parse(data: bytes, type_: type[T], where: str) -> T:
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise malformed(str(error), where) from error


def _manifest(entry: tuple[bytes, str]) -> _Manifest:
    data, where = entry
    header = _parse(data, _Header, where)
    check_version(header.format, header.ir_version, where)
    return _parse(data, _Manifest, where)


def _read_inline(graph: Graph, data: bytes, where: str) -> dict[int, TensorData]:
    types = _static_types(graph)
    try:
        tensors = read_tensors(data, {f"in{i}": t for i, t in types.items()})
    except ValueError as error:
        raise malformed(str(error), where) from error
    return {i: tensors[f"in{i}"] for i in types if f"in{i}" in tensors}


def _read_random(graph: Graph, data: bytes, where: str) -> _RandomWeights:
    wire = _parse(data, _RandomWeights, where)
    types = _static_types(graph)
    seen: set[int] = set()
    for tensor in wire.tensors:
        if tensor.input not in types or tensor.input in seen or not fits(tensor.distribution, types[tensor.input][0]):
            raise malformed(f"a random tensor for input {tensor.input} that does not fit it", where)
        seen.add(tensor.input)
    return wire
