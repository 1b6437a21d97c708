"""Damaged and hostile files: thousands of them, and never anything but an `IRError` or a file that reads."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from fairlead.errors import IRError
from fairlead.ir import File, Graph, read, verify, write

LIMIT = 1 << 16
ODD: list[Any] = [
    None, True, -1, 0, 1, 7, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), 0.5, float("nan"), float("inf"), "", "x", "b",
    "f32", "b + b", "(b//2)", "cuda:0", "user", "mutation", "normal", "\0", "é" * 9, [], [[]], [0], [0, 0], ["b"],
    [None] * 40,
    msgspec.msgpack.Ext(1, b"\0"), msgspec.msgpack.Ext(1, b"\xff" * 9), msgspec.msgpack.Ext(2, b"b + 1"),
    msgspec.msgpack.Ext(2, b"1 + b"), msgspec.msgpack.Ext(2, b"\xff"), msgspec.msgpack.Ext(3, b"dtype:f32"),
    msgspec.msgpack.Ext(3, b":"), msgspec.msgpack.Ext(4, b"0" * 16), msgspec.msgpack.Ext(9, b""),
]  # fmt: skip


@pytest.fixture(params=["inline", "random"])
def original(request: pytest.FixtureRequest, tmp_path: Path, rich_graph: Graph) -> Path:
    path = tmp_path / "original.fir"
    weight = torch.arange(128.0).reshape(16, 8).T.contiguous().T
    write(path, rich_graph, {1: weight, 4: torch.ones(2, 2, dtype=torch.complex128)}, weights=request.param)
    return path


def _survives(path: Path, data: bytes) -> bool:
    """Whether the bytes read as a sound file; any exception but an `IRError` is the caller's failure."""
    path.write_bytes(data)
    try:
        file = read(path)
        file.constants(limit=LIMIT)
    except IRError:
        return False
    assert isinstance(file, File)
    verify(file.graph)
    return True


def _damage(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    match chance.randrange(4):
        case 0:
            del changed[chance.randrange(len(changed)) :]
        case 1:
            start = chance.randrange(len(changed))
            del changed[start : start + chance.randrange(1, 9)]
        case 2:
            start = chance.randrange(len(changed))
            changed[start:start] = chance.randbytes(chance.randrange(1, 9))
        case _:
            for _ in range(chance.randrange(1, 4)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _zip(path: Path, entries: dict[str, bytes]) -> bytes:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return path.read_bytes()


def _entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _replace_somewhere(tree: Any, chance: random.Random) -> Any:
    """The same lists and dictionaries with something odd in one place, found from the root down."""
    if not isinstance(tree, list | dict) or not tree or chance.random() < 0.1:
        return chance.choice(ODD)
    changed = tree.copy()
    key = chance.choice(list(tree)) if isinstance(tree, dict) else chance.randrange(len(tree))
    if chance.random() < 0.1:
        del changed[key]
    else:
        changed[key] = _replace_somewhere(tree[key], chance)
    return changed


def test_damaged_bytes_are_an_error_or_harmless(original: Path, tmp_path: Path) -> None:
    data, chance = original.read_bytes(), random.Random(0)
    survivors = sum(_survives(tmp_path / "damaged.fir", _damage(data, chance)) for _ in range(1000))
    assert survivors < 500


def test_damaged_entries_with_right_checksums_are_an_error_or_harmless(original: Path, tmp_path: Path) -> None:
    entries, chance = _entries(original), random.Random(1)
    for _ in range(1000):
        name = chance.choice(list(entries))
        _survives(tmp_path / "damaged.fir", _zip(tmp_path / "zip", {**entries, name: _damage(entries[name], chance)}))


def _mutate_msgpack(data: bytes, chance: random.Random) -> bytes:
    tree = msgspec.msgpack.decode(data, ext_hook=lambda code, raw: msgspec.msgpack.Ext(code, bytes(raw)))
    return msgspec.msgpack.encode(_replace_somewhere(tree, chance))


def _mutate_json(data: bytes, chance: random.Random) -> bytes:
    return json.dumps(_replace_somewhere(json.loads(data), chance), default=lambda _: "extension").encode()


MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "graphs.msgpack": _mutate_msgpack,
    "locations.msgpack": _mutate_msgpack,
    "manifest.json": _mutate_json,
    "weights.json": _mutate_json,
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_well_formed_entries_with_odd_contents_are_an_error_or_harmless(
    original: Path, tmp_path: Path, name: str
) -> None:
    entries, chance = _entries(original), random.Random(2)
    if name not in entries:
        assert name == "weights.json"
        return
    for _ in range(500):
        changed = {**entries, name: MUTATIONS[name](entries[name], chance)}
        _survives(tmp_path / "odd.fir", _zip(tmp_path / "zip", changed))


def test_the_undamaged_file_survives(original: Path, tmp_path: Path) -> None:
    assert _survives(tmp_path / "same.fir", original.read_bytes())
    assert _survives(tmp_path / "same.fir", _zip(tmp_path / "zip", _entries(original)))
