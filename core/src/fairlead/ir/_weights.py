"""The constants of a file: kept in it, drawn from a random specification, or kept in other files beside it."""

from __future__ import annotations

import hashlib
import mmap
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, TypeVar

import msgspec

from fairlead.errors import ArgumentError, IRFormatError
from fairlead.ir._messagepack import malformed
from fairlead.ir._model import Graph, Module
from fairlead.ir._safetensors import Tensors, write_tensors
from fairlead.ir._tensors import TensorData, tensor_data
from fairlead.ir._types import DType, TensorType
from fairlead.ir.random import Distribution, describe, draw, fits

Weights: TypeAlias = Literal["inline", "none", "random"]
Place: TypeAlias = tuple[int, int]
"""A graph of the module and an input of it."""
T = TypeVar("T")

SEED = 0


class StoredTensor(msgspec.Struct, frozen=True):
    """A tensor of a safetensors file: ``file`` relative to the folder of the ``.fir`` file, and its name in there.

    A value of ``constants`` in `write`: the weights stay where they are.
    """

    file: str
    name: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    size: int
    sha256: str


class _Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The constant of one input: tensor ``name`` of ``file``, which is this one where it is None, or ``random``.

    Inputs with the same ``stream`` of random numbers share a tensor.
    """

    graph: int
    input: int
    name: str | None = None
    file: int | None = None
    random: Distribution | None = None
    stream: int = 0


class Specification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the constants of a file are."""

    seed: int = SEED
    files: tuple[_File, ...] = ()
    tensors: tuple[_Tensor, ...] = ()


Types: TypeAlias = Mapping[Place, tuple[DType, tuple[int, ...]]]


def specify(
    module: Module, constants: Mapping[int | Place, object], weights: Weights, folder: pathlib.Path
) -> tuple[Specification, dict[str, TensorData]]:
    """Where each constant goes, and the tensors that are to be kept in the file. An object given twice is kept once."""
    if weights == "none":
        return Specification(), {}
    types = static_types(module)
    kept: dict[str, TensorData] = {}
    first: dict[int, tuple[_Tensor, Place]] = {}
    files: dict[str, _File] = {}
    tensors: list[_Tensor] = []
    for place, tensor in sorted((key if isinstance(key, tuple) else (0, key), t) for key, t in constants.items()):
        if place not in types:
            raise _bad_constant(place, "the graph has no such input of static shape")
        if isinstance(tensor, StoredTensor):
            if tensor.file not in files:
                files[tensor.file] = _describe_file(tensor.file, folder, place)
            index = list(files).index(tensor.file)
            tensors.append(_Tensor(*place, name=tensor.name, file=index))
        elif id(tensor) in first and types[place] == types[first[id(tensor)][1]]:
            tensors.append(msgspec.structs.replace(first[id(tensor)][0], graph=place[0], input=place[1]))
        else:
            data = _checked(tensor, place, types[place])
            name = f"g{place[0]}.in{place[1]}"
            row = _Tensor(*place, name=name)
            if weights == "random":
                row = _Tensor(*place, random=describe(data), stream=(place[0] << 32) + place[1])
            else:
                kept[name] = data
            first[id(tensor)] = row, place
            tensors.append(row)
    return Specification(SEED, tuple(files.values()), tuple(tensors)), kept


def pieces(kept: Mapping[str, TensorData]) -> Iterable[bytes | memoryview]:
    """The constants that are kept in the file, as safetensors."""
    return write_tensors(kept)


class Constants:
    """The constants of a file that was read, checked against its module; each is made when it is first asked for."""

    def __init__(self, module: Module, specification: Specification, inline: memoryview | None, where: str) -> None:
        self._types = static_types(module)
        self._specification = specification
        self._where = where
        self._made: dict[object, TensorData] = {}
        self._files: dict[tuple[int, bool], Tensors] = {}
        self._inline = _of(lambda: Tensors(inline), where) if inline is not None else None
        self._check()

    def _check(self) -> None:
        seen: set[Place] = set()
        names: set[str] = set()
        for row in self._specification.tensors:
            place = row.graph, row.input
            if place not in self._types or place in seen or (row.random is None) == (row.name is None):
                raise malformed(f"a constant for input {row.input} that does not fit it", self._where)
            seen.add(place)
            if row.random is not None and (row.file is not None or not fits(row.random, self._types[place][0])):
                raise malformed(f"a random tensor for input {row.input} that does not fit it", self._where)
            if row.file is not None and not 0 <= row.file < len(self._specification.files):
                raise malformed(f"file {row.file} of a table of {len(self._specification.files)}", self._where)
            if row.name is not None and row.file is None:
                names.add(row.name)
                self._tensor(row, False)
        for name in self._inline or ():
            if name not in names:
                raise malformed(f"a tensor {name[:80]!r}, which is no input of static shape", self._where)
        for file in self._specification.files:
            if not _is_beside(file.path):
                raise malformed(f"weights in {file.path[:80]!r}, which is not beside this file", self._where)

    def of(self, graph: int, limit: int, check: bool) -> dict[int, TensorData]:
        """The constants of one graph by input."""
        rows = [r for r in self._specification.tensors if r.graph == graph]
        size = sum(_size(*self._types[r.graph, r.input]) for r in rows if r.random is not None)
        if size > limit:
            raise IRFormatError(
                f"its random weights take {size} bytes, more than the limit of {limit}",
                where=self._where,
                next=f"pass constants(limit={size}) if you trust the file",
            )
        return {r.input: self._tensor(r, check) for r in rows}

    def _tensor(self, row: _Tensor, check: bool) -> TensorData:
        """One object for all inputs that share a tensor, so that writing them again shares it again."""
        type_ = self._types[row.graph, row.input]
        key = row.name, row.file, row.random, row.stream, type_
        if key not in self._made:
            self._made[key] = self._make(row, type_, check)
        elif row.file is not None:
            self._file(row.file, check)
        return self._made[key]

    def _make(self, row: _Tensor, type_: tuple[DType, tuple[int, ...]], check: bool) -> TensorData:
        if row.random is not None:
            return draw(row.random, self._specification.seed, row.stream, *type_)
        tensors = self._inline if row.file is None else self._file(row.file, check)
        if tensors is None:
            raise malformed("it keeps no weights, but an input has some", self._where)
        return _of(lambda: tensors.get(row.name or "", *type_), self._where)

    def _file(self, index: int, check: bool) -> Tensors:
        known = self._files.get((index, True)) or (None if check else self._files.get((index, False)))
        if known is None:
            data = _map_file(self._specification.files[index], self._where, check)
            known = self._files[index, check] = _of(lambda: Tensors(data), self._where)
        return known


def static_types(module: Module) -> Types:
    """Element type and shape of each input that a constant can be the value of."""
    return {(g, i): type_ for g, graph in enumerate(module.graphs) for i, type_ in _static(graph)}


def _static(graph: Graph) -> Iterator[tuple[int, tuple[DType, tuple[int, ...]]]]:
    for index, type_ in enumerate(i.value.type for i in graph.inputs):
        if isinstance(type_, TensorType) and type_.is_static:
            yield index, (type_.dtype, tuple(d for d in type_.shape if isinstance(d, int)))


def _size(dtype: DType, shape: tuple[int, ...]) -> int:
    size = dtype.itemsize
    for d in shape:
        size *= d
    return size


def _of(make: Callable[[], T], where: str) -> T:
    try:
        return make()
    except ValueError as error:
        raise malformed(str(error), where) from error


def _checked(tensor: object, place: Place, type_: tuple[DType, tuple[int, ...]]) -> TensorData:
    try:
        data = tensor_data(tensor)
    except TypeError as error:
        raise _bad_constant(place, str(error)) from error
    dtype, shape = type_
    if (data.dtype, data.shape) != (dtype, shape):
        raise _bad_constant(place, f"it is {data.dtype}{list(data.shape)}, the input is {dtype}{list(shape)}")
    return data


def _bad_constant(place: Place, why: str) -> ArgumentError:
    return ArgumentError(
        f"constant {place[1]} cannot be written: {why}",
        where="fairlead.ir.write" + (f", graph {place[0]}" if place[0] else ""),
        next="pass tensors by the index of the graph input that they are the value of",
    )


def _is_beside(path: str) -> bool:
    """Whether a path leads nowhere but into the folder that it is relative to, on every system."""
    parts = path.split("/")
    return bool(path) and not any(p in ("", ".", "..") or set(p) & set("\\:\0") for p in parts)


def _describe_file(path: str, folder: pathlib.Path, place: Place) -> _File:
    if not _is_beside(path):
        raise _bad_constant(place, f"{path!r} does not lead into the folder of the file, with / between names")
    try:
        with open(folder / path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return _File(path, os.fstat(file.fileno()).st_size, digest)
    except OSError as error:
        raise _bad_constant(place, f"{path!r} cannot be read: {error.strerror}") from error


def _map_file(file: _File, where: str, check: bool) -> memoryview:
    folder = pathlib.Path(where).resolve().parent
    target = (folder / file.path).resolve()
    if not target.is_relative_to(folder):
        raise malformed(f"weights in {file.path!r}, which leads out of the folder of this file", where)
    try:
        with open(target, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            digest = hashlib.file_digest(opened, "sha256").hexdigest() if check and size == file.size else file.sha256
            if (size, digest) != (file.size, file.sha256) or not size:
                raise _lost(f"the weights in {file.path} have changed since this file was written", where)
            return memoryview(mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_COPY))
    except OSError as error:
        raise _lost(f"the weights in {file.path} cannot be read: {error.strerror}", where) from error


def _lost(what: str, where: str) -> IRFormatError:
    return IRFormatError(what, where=where, next="put the file with the weights back beside it, as it was")
