"""Damaged and hostile text, bytes and files, as many as one likes, the same for the same seed."""

from __future__ import annotations

import functools
import io
import json
import pathlib
import random
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from fairlead import ir
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, TensorData, TensorType, Value

from .random_graphs import random_graph

LIMIT = 1 << 16
FORMS = ("text", "bytes", "file", "entries", "structure", "weights", "nesting")
ODD: list[Any] = [
    None, True, -1, 0, 1, 7, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), 0.5, float("nan"), float("inf"), "", "x", "b",
    "f32", "b + b", "(b//2)", "cuda:0", "user", "mutation", "normal", "\0", "é" * 9, [], [[]], [0], [0, 0], ["b"],
    [None] * 40, {}, {"a": 1}, b"raw", "9" * 300, "(" * 90, "*".join("(a + b + c)" for _ in range(40)),
    msgspec.msgpack.Ext(1, b"\0"), msgspec.msgpack.Ext(1, b"b + 1"), msgspec.msgpack.Ext(1, b"\xff" * 9),
    msgspec.msgpack.Ext(2, b"dtype:f32"), msgspec.msgpack.Ext(2, b":"), msgspec.msgpack.Ext(3, b"0" * 16),
    msgspec.msgpack.Ext(9, b""),
]  # fmt: skip
SNIPPETS = (
    "[", "[" * 40, "(", "{", "}", "<", '"', "\\", "%0", "%99999999999999999999", "9" * 40, "region @r region {",
    "graph @g inference {", "a.b() {", "symbol s in [1, 2] from in0", "inf", "-", "_", ",", "#dtype<f32>", " loc(",
    "max(", "*" * 9, "f32[", "strides[", "\0", "é", "fairlead-ir 1.0\n", "op a.b 1 \"\"\n", "->", "1e999",
    "*(a + b)" * 9,
)  # fmt: skip


class Case(NamedTuple):
    """One input: what it damages, how, and the reading of it, which may raise."""

    number: int
    form: str
    damage: str
    read: Callable[[], object]


class Original(NamedTuple):
    text: str
    data: bytes
    file: bytes
    entries: dict[str, bytes]


@functools.cache
def originals() -> tuple[Original, ...]:
    """Sound inputs that the damage starts from: graphs of every shape, and a file with weights."""
    graphs = [random_graph(seed) for seed in range(24)]
    weight, table = Value(0, TensorType(DType.f32, (16, 8))), Value(1, TensorType(DType.c64, (2, 2)))
    inputs = (Input(weight, Role.parameter, "w"), Input(table, Role.constant, "t"))
    graphs.append(Graph("weights", Kind.inference, inputs, (Node("a.b", (weight,), (Value(2, weight.type),)),), ()))
    return tuple(_original(g, mode) for g in graphs for mode in ("inline", "random"))


def _original(graph: Graph, mode: Any) -> Original:
    constants = {}
    if graph.name == "weights":
        constants = {0: TensorData(DType.f32, (16, 8), memoryview(bytearray(range(128)) * 4))}
        constants[1] = TensorData(DType.c64, (2, 2), memoryview(bytearray(32)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "g.fir"
        ir.write(path, ir.module(graph, producer={"fairlead": "1"}), constants, weights=mode)
        whole = ir.read(path).module
        with zipfile.ZipFile(path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        return Original(ir.to_text(whole, locations=True), ir.to_bytes(whole), path.read_bytes(), entries)


def cases(count: int, seed: int, path: pathlib.Path) -> Iterator[Case]:
    """That many inputs; those that are files are written to ``path``, one over the other."""
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        original, form = chance.choice(originals()), FORMS[number % len(FORMS)]
        match form:
            case "text":
                damage, text = _damaged_text(original.text, chance)
                yield Case(number, form, damage, functools.partial(ir.parse, text))
            case "bytes":
                damage, data = _damaged(original.data, chance)
                yield Case(number, form, damage, functools.partial(ir.from_bytes, data))
            case "structure":
                data = _mutated_messagepack(original.data, chance)
                yield Case(number, form, "something odd", functools.partial(ir.from_bytes, data))
            case "nesting":
                damage, read = _nested(chance)
                yield Case(number, form, damage, read)
            case _:
                damage, data = _damaged_file(form, original, chance)
                path.write_bytes(data)
                yield Case(number, form, damage, functools.partial(_read_file, path))


def _read_file(path: pathlib.Path) -> object:
    file = ir.read(path)
    for graph in range(len(file.module.graphs)):
        file.constants(graph, limit=LIMIT)
    return ir.verify(file.module)


def _damaged(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    changed = bytearray(data)
    match chance.randrange(5):
        case 0:
            del changed[chance.randrange(len(changed)) :]
            return "truncated", bytes(changed)
        case 1:
            start = chance.randrange(len(changed))
            del changed[start : start + chance.randrange(1, 9)]
            return "bytes removed", bytes(changed)
        case 2:
            start = chance.randrange(len(changed))
            changed[start:start] = chance.randbytes(chance.randrange(1, 9))
            return "bytes added", bytes(changed)
        case 3:
            start = chance.randrange(len(changed))
            huge = (b"\xdd\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdb\x7f\xff\xff\xff", b"\xdd\0\x40\0\0", b"\xff" * 8)
            changed[start : start + chance.randrange(6)] = chance.choice(huge) * chance.choice([1, 1, 1, 50])
            return "a huge count", bytes(changed)
    for _ in range(chance.randrange(1, 4)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return "bits flipped", bytes(changed)


def _damaged_text(text: str, chance: random.Random) -> tuple[str, str]:
    start = chance.randrange(len(text))
    match chance.randrange(4):
        case 0:
            return "truncated", text[:start]
        case 1:
            return "a snippet added", text[:start] + chance.choice(SNIPPETS) * chance.choice([1, 1, 20]) + text[start:]
        case 2:
            end = start + chance.randrange(1, 30)
            return "a piece doubled", text[:end] + text[start:]
    return "bytes changed", _damaged(text.encode(), chance)[1].decode("utf-8", "replace")


def _damaged_file(form: str, original: Original, chance: random.Random) -> tuple[str, bytes]:
    if form == "file":
        return _damaged(original.file, chance)
    entries = dict(original.entries)
    if form == "weights":
        entries["weights.safetensors"] = _odd_weights(chance)
        return "odd weights", _zip(entries)
    name = chance.choice(list(entries))
    match chance.randrange(4):
        case 0:
            damage, entries[name] = _damaged(entries[name] or b"\0", chance)
        case 1:
            damage, _ = "an entry missing", entries.pop(name)
        case 2:
            other = chance.choice(originals()).entries
            damage, entries[name] = "an entry of another file", other.get(name, b"")
        case _:
            damage = "something odd"
            mutated = _mutated_json if name.endswith("json") else _mutated_messagepack
            entries[name] = entries[name] if name.endswith("safetensors") else mutated(entries[name], chance)
    return f"{name}: {damage}", _zip(entries)


def _odd_weights(chance: random.Random) -> bytes:
    """Safetensors whose tensors overlap, are doubled, leave holes or lie about their sizes."""
    header: dict[str, Any] = {}
    for name in ("g0.in0", "g0.in1", "x"):
        if chance.random() < 0.7:
            start = chance.choice([0, 0, 128, 512, -1, 2**63])
            shape = chance.choice([[16, 8], [2, 2, 2], [2**32, 2**32], [-1], [0], [1] * 99])
            end = start + chance.choice([512, 32, 0, 2**62])
            header[name] = {"dtype": chance.choice(["F32", "F64", "X"]), "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    if chance.random() < 0.2:
        text = text[:-1] + b"," + text[1:]
    length = chance.choice([len(text)] * 6 + [0, len(text) + 1, 2**63, 2**64 - 1])
    return struct.pack("<Q", length) + text + bytes(chance.choice([0, 512, 544, 1024]))


def _nested(chance: random.Random) -> tuple[str, Callable[[], object]]:
    depth = chance.choice([3, 8, 9, 17, 64, 65, 500, 5000])
    match chance.randrange(5):
        case 0:
            text = "graph @g inference {" + "a.b() { region @r region {" * depth + "}" * (2 * depth + 1)
            return f"regions {depth} deep in text", functools.partial(ir.parse, text)
        case 1:
            text = f"graph @g inference {{ a.b({'[' * depth}{']' * depth}) }}"
            return f"lists {depth} deep in text", functools.partial(ir.parse, text)
        case 2:
            data = b"\x91" * depth + b"\xc0"
            return f"arrays {depth} deep", functools.partial(ir.from_bytes, data)
        case 3:
            text = f'graph @g inference {{ in %0 user "" : f32[{"(" * depth}1{")" * depth}] }}'
            return f"a dimension {depth} deep", functools.partial(ir.parse, text)
    wire = msgspec.msgpack.decode(ir.to_bytes(Graph("g", Kind.inference, (), (Node("a.b", (), ()),), (Output(None),))))
    graph: Any = wire[-1][0]
    for _ in range(min(depth, 200)):
        graph = ["", "region", [], [], ["a.b"], [], [], [[0, [], [], [graph]]], []]
    data = msgspec.msgpack.encode([*wire[:-1], [graph]])
    return f"regions {depth} deep in bytes", functools.partial(ir.from_bytes, data)


def _zip(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def _mutated_messagepack(data: bytes, chance: random.Random) -> bytes:
    tree = msgspec.msgpack.decode(data, ext_hook=lambda code, raw: msgspec.msgpack.Ext(code, bytes(raw)))
    return msgspec.msgpack.encode(_replace_somewhere(tree, chance))


def _mutated_json(data: bytes, chance: random.Random) -> bytes:
    return json.dumps(_replace_somewhere(json.loads(data), chance), default=lambda _: "extension").encode()


def _replace_somewhere(tree: Any, chance: random.Random) -> Any:
    """The same lists and dictionaries with something odd in one place, found from the root down."""
    if not isinstance(tree, list | dict) or not tree or chance.random() < 0.1:
        return chance.choice(ODD)
    changed = tree.copy()
    key = chance.choice(list(tree)) if isinstance(tree, dict) else chance.randrange(len(tree))
    if chance.random() < 0.1:
        del changed[key]
    elif isinstance(tree, list) and chance.random() < 0.1:
        changed.insert(key, changed[key])
    else:
        changed[key] = _replace_somewhere(tree[key], chance)
    return changed
