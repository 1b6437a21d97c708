from __future__ import annotations

import itertools
import json
import math
import mmap
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
import safetensors
import safetensors.torch
import torch
from torch._subclasses import FakeTensorMode

from fairlead import ir
from fairlead.errors import ArgumentError, IRFormatError, IRVersionError, VerificationError
from fairlead.ir import DType, Graph, Input, Kind, Location, Role, TensorData, TensorType, Value, read, to_text, write

replace = msgspec.structs.replace
Entries = dict[str, bytes]

TORCH_DTYPES = [getattr(torch, d.long_name) for d in DType]


def _constants_graph(tensors: Iterable[tuple[DType, tuple[int, ...]]]) -> Graph:
    inputs = tuple(Input(Value(i, TensorType(d, s)), Role.constant, f"c{i}") for i, (d, s) in enumerate(tensors))
    return Graph("constants", Kind.inference, inputs, (), ())


def _bits(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of arbitrary bits of this element type; bools are 0 or 1."""
    count = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
    raw = torch.arange(1, count + 1, dtype=torch.int64).mul(37).to(torch.uint8)
    return (raw % 2 == 0 if dtype is torch.bool else raw.view(dtype)).reshape(shape)


def _entries(path: Path) -> Entries:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _rewrite(path: Path, entries: Entries) -> None:
    """The same zip with other contents and right checksums, as somebody with bad intentions would write it."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data)


# ---- what is written is read back


def test_a_graph_comes_back_as_it_was(tmp_path: Path, rich_graph: Graph) -> None:
    write(tmp_path / "g.fir", rich_graph)
    file = read(tmp_path / "g.fir")
    assert to_text(file.graph, locations=True) == to_text(rich_graph, locations=True)
    assert repr(file.graph) == repr(rich_graph)  # not ==, which is false for the NaN in it
    assert (file.weights, file.constants()) == ("inline", {})
    assert set(file.module.producer) == {"fairlead", "torch"}


def test_several_graphs_and_their_regions_come_back(tmp_path: Path, small_graph: Graph, nested_graph: Graph) -> None:
    whole = ir.module(replace(small_graph, name="other"), nested_graph)
    ir.write(tmp_path / "g.fir", whole)
    assert read(tmp_path / "g.fir").module == whole
    assert list(whole.ops) == [
        "aten.linear.default",
        "aten.neg.default",
        "aten.relu.default",
        "hop.cond.default",
        "hop.map.default",
    ]
    with pytest.raises(ValueError, match="too many values"):
        read(tmp_path / "g.fir").graph  # noqa: B018


def test_locations_can_be_left_out(tmp_path: Path, small_graph: Graph) -> None:
    write(tmp_path / "g.fir", small_graph, locations=False)
    graph = read(tmp_path / "g.fir").graph
    assert b"model.py" not in (tmp_path / "g.fir").read_bytes()
    assert [n.location for n in graph.nodes] == [None, None]
    assert to_text(graph) == to_text(small_graph)


def test_a_path_that_is_no_text_is_kept_printable(tmp_path: Path, small_graph: Graph) -> None:
    location = Location("caf\udce9.py", 3)
    nodes = (replace(small_graph.nodes[0], location=location), *small_graph.nodes[1:])
    write(tmp_path / "g.fir", replace(small_graph, nodes=nodes))
    assert str(read(tmp_path / "g.fir").graph.nodes[0].location) == "caf\\udce9.py:3"


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)])
@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_a_torch_tensor_of_each_dtype_comes_back(tmp_path: Path, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = _bits(dtype, shape)
    ir_dtype = next(d for d in DType if getattr(torch, d.long_name) is dtype)
    write(tmp_path / "g.fir", _constants_graph([(ir_dtype, shape)]), {0: tensor})
    data = read(tmp_path / "g.fir").constants()[0]
    assert (data.dtype, data.shape) == (ir_dtype, shape)
    assert bytes(data.data) == bytes(tensor.reshape(-1).view(torch.uint8).tolist())


def test_strided_negated_and_conjugated_tensors_are_written_as_they_read(tmp_path: Path) -> None:
    matrix = torch.arange(6.0).reshape(2, 3).T
    conjugate = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64).conj()
    negated = torch.tensor([1 + 2j], dtype=torch.complex128).conj().imag
    graph = _constants_graph([(DType.f32, (3, 2)), (DType.c64, (2,)), (DType.f64, (1,))])
    write(tmp_path / "g.fir", graph, {0: matrix, 1: conjugate, 2: negated})
    found = {i: numpy.asarray(c) for i, c in read(tmp_path / "g.fir").constants().items()}
    assert found[0].tolist() == matrix.tolist()
    assert found[1].tolist() == [1 - 2j, 3 + 4j]
    assert found[2].tolist() == [-2.0]


@pytest.mark.parametrize("name", ["bool", "u1", "i8", "f2", "f4", "f8", "c8", "c16", ">f4", ">i2"])
def test_a_numpy_array_comes_back(tmp_path: Path, name: str) -> None:
    array = numpy.arange(6).astype(name).reshape(2, 3)[:, ::-1]
    dtype = next(d for d in DType if d.long_name == array.dtype.name)
    write(tmp_path / "g.fir", _constants_graph([(dtype, (2, 3))]), {0: array})
    found = numpy.asarray(read(tmp_path / "g.fir").constants()[0])
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.tolist() == array.tolist()


def test_constants_can_be_read_without_a_copy_and_written_to(tmp_path: Path) -> None:
    write(
        tmp_path / "g.fir", _constants_graph([(DType.bf16, (2,))]), {0: torch.tensor([1.0, 2.0], dtype=torch.bfloat16)}
    )
    data = read(tmp_path / "g.fir").constants()[0]
    tensor = torch.frombuffer(data.data, dtype=torch.bfloat16)
    tensor[0] = 5
    assert tensor.tolist() == [5.0, 2.0]
    assert numpy.asarray(data).tobytes() == bytes(data.data) == tensor.view(torch.uint8).numpy().tobytes()


def test_the_weights_are_a_safetensors_file(tmp_path: Path) -> None:
    graph = _constants_graph([(DType.bool, (3,)), (DType.f64, (1,)), (DType.c64, (2,))])
    write(
        tmp_path / "g.fir",
        graph,
        {0: torch.ones(3, dtype=torch.bool), 1: torch.ones(1).double(), 2: torch.ones(2) * 1j},
    )
    found = dict(
        safetensors.deserialize(  # type: ignore[no-untyped-call]
            _entries(tmp_path / "g.fir")["weights.safetensors"]
        )
    )
    assert {n: (t["dtype"], t["shape"]) for n, t in found.items()} == {
        "g0.in0": ("BOOL", [3]),
        "g0.in1": ("F64", [1]),
        "g0.in2": ("F32", [2, 2]),
    }


def test_weights_are_mapped_where_they_are_aligned_and_private(tmp_path: Path, small_graph: Graph) -> None:
    write(tmp_path / "g.fir", small_graph, {1: torch.arange(6.0).reshape(3, 2)})
    before = (tmp_path / "g.fir").read_bytes()
    data = read(tmp_path / "g.fir").constants()[1]
    assert isinstance(data.data.obj, mmap.mmap)
    assert torch.frombuffer(data.data, dtype=torch.float32).data_ptr() % 64 == 0
    data.data[0] = 255
    assert (tmp_path / "g.fir").read_bytes() == before
    with zipfile.ZipFile(tmp_path / "g.fir") as archive:
        for info in archive.infolist():
            header = before[info.header_offset :]
            assert (info.header_offset + 30 + sum(struct.unpack_from("<HH", header, 26))) % 64 == 0


def test_a_file_can_be_written_over_while_its_weights_are_in_use(tmp_path: Path, small_graph: Graph) -> None:
    write(tmp_path / "g.fir", small_graph, {1: torch.ones(3, 2)})
    held = read(tmp_path / "g.fir").constants()
    write(tmp_path / "g.fir", small_graph, {1: torch.zeros(3, 2)})
    assert numpy.asarray(held[1]).tolist() == [[1, 1]] * 3
    assert numpy.asarray(read(tmp_path / "g.fir").constants()[1]).tolist() == [[0, 0]] * 3
    assert [p.name for p in tmp_path.iterdir()] == ["g.fir"]


@pytest.mark.parametrize("weights", ["inline", "random"])
def test_graphs_share_a_tensor_that_is_kept_once(tmp_path: Path, small_graph: Graph, weights: Any) -> None:
    whole = ir.module(small_graph, replace(small_graph, name="other"))
    weight = torch.randn(3, 2)
    write(tmp_path / "a", whole, {(0, 1): weight, (1, 1): weight}, weights=weights)
    file = read(tmp_path / "a")
    first, second = file.constants(0)[1], file.constants(1)[1]
    assert first is second
    write(tmp_path / "b", file.module, {(0, 1): first, (1, 1): second}, weights="inline")
    found = safetensors.deserialize(  # type: ignore[no-untyped-call]
        _entries(tmp_path / "b")["weights.safetensors"]
    )
    assert [name for name, _ in found] == ["g0.in1"]


# ---- weights in other files


@pytest.fixture
def beside(tmp_path: Path, small_graph: Graph) -> Path:
    """A file whose weights are in a safetensors file of the library's, in a folder beside it."""
    (tmp_path / "weights").mkdir()
    safetensors.torch.save_file({"fc.weight": torch.arange(6.0).reshape(3, 2)}, tmp_path / "weights/model.safetensors")
    stored = ir.StoredTensor("weights/model.safetensors", "fc.weight")
    write(tmp_path / "g.fir", small_graph, {1: stored})
    return tmp_path / "g.fir"


def test_weights_stay_in_their_own_file(beside: Path) -> None:
    assert "weights.safetensors" not in _entries(beside)
    assert numpy.asarray(read(beside).constants()[1]).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_weights_that_are_missing_or_changed_are_named(beside: Path) -> None:
    weights = beside.parent / "weights/model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[:-1] + b"x")
    assert read(beside).constants(check=False)[1].shape == (3, 2)
    for change, message in (
        (data[:-1] + b"x", "the weights in weights/model.safetensors have changed since this file was written"),
        (data + b"x", "the weights in weights/model.safetensors have changed since this file was written"),
        (None, "the weights in weights/model.safetensors cannot be read: No such file or directory"),
    ):
        weights.write_bytes(change) if change else weights.unlink()
        with pytest.raises(IRFormatError, match=re.escape(message)) as caught:
            read(beside).constants()
        assert caught.value.next == "put the file with the weights back beside it, as it was"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "", ".", "a/../../x", "c:x", "a\\b", "a\0b"])
def test_weights_outside_the_folder_are_refused(beside: Path, small_graph: Graph, path: str) -> None:
    with pytest.raises(ArgumentError, match="does not lead into the folder of the file"):
        write(beside.with_name("h.fir"), small_graph, {1: ir.StoredTensor(path, "fc.weight")})
    entries = _entries(beside)
    weights = json.loads(entries["weights.json"])
    weights["files"][0]["path"] = path
    entries["weights.json"] = json.dumps(weights).encode()
    _rewrite(beside, entries)
    with pytest.raises(IRFormatError, match="which is not beside this file"):
        read(beside)


def test_a_link_out_of_the_folder_is_refused(beside: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "w"
    weights = beside.parent / "weights/model.safetensors"
    outside.write_bytes(weights.read_bytes())
    weights.unlink()
    weights.symlink_to(outside)
    with pytest.raises(IRFormatError, match="which leads out of the folder of this file"):
        read(beside).constants()


def test_a_file_of_weights_that_is_not_there_cannot_be_referred_to(tmp_path: Path, small_graph: Graph) -> None:
    with pytest.raises(ArgumentError, match="'w' cannot be read: No such file"):
        write(tmp_path / "g.fir", small_graph, {1: ir.StoredTensor("w", "x")})


def test_another_version_of_the_ir_cannot_be_written(tmp_path: Path, small_graph: Graph) -> None:
    with pytest.raises(ArgumentError, match=r"IR version 1\.1 cannot be written"):
        write(tmp_path / "g.fir", small_graph, ir_version=(1, 1))


def test_weights_can_be_left_out(tmp_path: Path, small_graph: Graph) -> None:
    write(tmp_path / "g.fir", small_graph, {1: torch.ones(3, 2)}, weights="none")
    assert list(_entries(tmp_path / "g.fir")) == ["manifest.json", "graphs.msgpack", "locations.msgpack"]
    assert (read(tmp_path / "g.fir").weights, read(tmp_path / "g.fir").constants()) == ("none", {})


@pytest.mark.parametrize(
    ("index", "tensor", "message"),
    [
        (0, torch.ones(4, 2), "constant 0 cannot be written: the graph has no such input of static shape"),
        (5, torch.ones(4, 2), "constant 5 cannot be written: the graph has no such input of static shape"),
        (1, torch.ones(2, 3), "it is f32[2, 3], the input is f32[3, 2]"),
        (1, torch.ones(3, 2).half(), "it is f16[3, 2], the input is f32[3, 2]"),
        (1, [1.0], "a list is neither a torch tensor nor a NumPy array"),
        (1, torch.ones(3, 2, device="meta"), "its elements cannot be read: Cannot copy out of meta tensor; no data!"),
        (1, FakeTensorMode().from_tensor(torch.ones(3, 2)), "it has no elements (a fake tensor)"),
        (1, torch.ones(3, 2).to_sparse(), "its layout is torch.sparse_coo, not strided"),
        (1, numpy.array(["a"]), "its element type str32 is none of the IR's"),
    ],
)
def test_a_constant_that_does_not_fit_is_refused(
    tmp_path: Path, small_graph: Graph, index: int, tensor: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        write(tmp_path / "g.fir", small_graph, {index: tensor})
    assert not (tmp_path / "g.fir").exists()


def test_a_broken_graph_is_not_written(tmp_path: Path, small_graph: Graph) -> None:
    with pytest.raises(VerificationError, match="symbol b is used but not declared"):
        write(tmp_path / "g.fir", replace(small_graph, symbols=()))
    assert not (tmp_path / "g.fir").exists()


# ---- the same arguments give the same bytes


def test_two_writes_give_the_same_bytes(tmp_path: Path, small_graph: Graph) -> None:
    for name, constants in (("a", {1: torch.ones(3, 2)}), ("b", {1: numpy.ones((3, 2), "f4")})):
        write(tmp_path / name, small_graph, constants)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


_CHILD = """
import sys
from fairlead.ir import DType, TensorData, fingerprint, read, write
file = read(sys.argv[1])
write(sys.argv[2], file.graph, file.constants(), weights=sys.argv[3])
print(fingerprint(file.graph))
"""


@pytest.mark.parametrize("weights", ["inline", "random"])
def test_two_processes_give_the_same_bytes_and_fingerprint(tmp_path: Path, small_graph: Graph, weights: str) -> None:
    write(tmp_path / "g.fir", small_graph, {1: torch.arange(6.0).reshape(3, 2)})
    for seed in ("1", "2"):
        command = [sys.executable, "-c", _CHILD, f"{tmp_path}/g.fir", f"{tmp_path}/{seed}", weights]
        run = subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        (tmp_path / f"{seed}.txt").write_text(run.stdout)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert (tmp_path / "1.txt").read_text() == (tmp_path / "2.txt").read_text()


# ---- malformed files


def test_a_newer_version_is_named(tmp_path: Path, small_graph: Graph) -> None:
    write(tmp_path / "g.fir", small_graph)
    entries = _entries(tmp_path / "g.fir")
    entries["manifest.json"] = b'{"format": "fairlead-ir", "ir_version": [3, 1], "unknown": {}}'
    _rewrite(tmp_path / "g.fir", entries)
    with pytest.raises(IRVersionError, match=r"it has IR version 3\.1; this Fairlead reads up to 1\.0") as caught:
        read(tmp_path / "g.fir")
    assert caught.value.where == f"{tmp_path / 'g.fir'}, entry manifest.json"
    assert caught.value.next == "pip install --upgrade fairlead"


def _manifest(**changes: Any) -> Callable[[Entries], None]:
    def change(entries: Entries) -> None:
        entries["manifest.json"] = json.dumps({**json.loads(entries["manifest.json"]), **changes}).encode()

    return change


def _graph(position: int, value: Any) -> Callable[[Entries], None]:
    """The wire form with another item at this place of its outermost array."""

    def change(entries: Entries) -> None:
        wire = msgspec.msgpack.decode(entries["graphs.msgpack"], ext_hook=lambda c, d: msgspec.msgpack.Ext(c, bytes(d)))
        wire[0][position] = value
        entries["graphs.msgpack"] = msgspec.msgpack.encode(wire)

    return change


def _constant(**changes: Any) -> Callable[[Entries], None]:
    def change(entries: Entries) -> None:
        weights = json.loads(entries["weights.json"])
        weights["tensors"][0].update(changes)
        entries["weights.json"] = json.dumps(weights).encode()

    return change


def _set(name: str, data: bytes) -> Callable[[Entries], None]:
    return lambda entries: entries.update({name: data})


def _weights(name: str, shape: list[int], data: bytes, size: int) -> Callable[[Entries], None]:
    """A safetensors file of one f32 tensor whose header claims this shape and this many bytes."""
    text = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}).encode()
    return _set("weights.safetensors", struct.pack("<Q", len(text)) + text + data)


def _ext(code: int, data: bytes) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, data)


def _nested(depth: int) -> list[Any]:
    return [_nested(depth - 1)] if depth else []


def _nested_region(depth: int) -> list[Any]:
    nodes = [[0, [], [], [_nested_region(depth - 1)]]] if depth else []
    return ["", "region", [], [], ["hop.map"], [], [], nodes, []]


DEEP = b"\x91" * 5000 + b"\xc0"

MALFORMED: list[tuple[str, Callable[[Entries], object], str]] = [
    ("no manifest", lambda e: e.pop("manifest.json"), "the entry manifest.json is missing"),
    ("no graph", lambda e: e.pop("graphs.msgpack"), "the entry graphs.msgpack is missing"),
    ("no weights", lambda e: e.pop("weights.safetensors"), "it keeps no weights, but an input has some"),
    ("no list of weights", lambda e: e.pop("weights.json"), "a tensor 'g0.in1', which is no input of static shape"),
    ("a foreign entry", _set("evil.pkl", b""), "an unknown or repeated entry 'evil.pkl'"),
    ("a constant of no input", _constant(input=7), "a constant for input 7 that does not fit it"),
    ("a constant of no graph", _constant(graph=1), "a constant for input 1 that does not fit it"),
    ("a constant of nowhere", _constant(name=None), "a constant for input 1 that does not fit it"),
    ("a constant in no file", _constant(file=0), "file 0 of a table of 0"),
    ("another format", _manifest(format="zip"), "its format is 'zip', not 'fairlead-ir'"),
    ("a version before the first", _manifest(ir_version=[0, 0]), "it has IR version 0.0, which was never released"),
    ("another name", _manifest(graphs=[{"name": "other", "kind": "inference"}]), "the manifest names other graphs"),
    ("an unknown field", _manifest(extra=1), "Object contains unknown field `extra`"),
    ("an unknown way of weights", _manifest(weights="pickle"), "Invalid enum value 'pickle'"),
    ("a manifest that is no JSON", _set("manifest.json", b"{"), "Input data was truncated"),
    ("a manifest nested deep", _set("manifest.json", b"[" * 100000), "Expected `object`, got `array`"),
    ("a graph that is empty", _set("graphs.msgpack", b""), "malformed MessagePack: it ends early"),
    ("a graph that is a map", _set("graphs.msgpack", b"\x80"), "malformed MessagePack: an item that starts with 0x80"),
    ("a graph nested deep", _set("graphs.msgpack", DEEP), "malformed MessagePack: arrays nested more than 64 deep"),
    ("a large array", _set("graphs.msgpack", b"\xdd\xff\xff\xff\xff"), "an array of 4294967295 items in 0 bytes"),
    (
        "a large string",
        _set("graphs.msgpack", b"\xdb\xff\xff\xff\xff"),
        "it ends within an item",
    ),
    (
        "a timestamp",
        _set("graphs.msgpack", b"\xd6\xff\0\0\0\0"),
        "an unknown extension type 255",
    ),
    ("two graphs", _set("graphs.msgpack", b"\xc0\xc0"), "malformed MessagePack: 1 bytes after the end"),
    (
        "a graph that is a number",
        _set("graphs.msgpack", b"\x01"),
        "not what belongs here: Expected `array`, got `int`",
    ),
    ("an unknown kind", _graph(1, "sideways"), "Invalid enum value 'sideways' - at `$[0][1]`"),
    ("an unknown dtype", _graph(3, [["f7", [1], None, "cpu"]]), "Invalid enum value 'f7'"),
    ("a type that is not there", _graph(6, [[0, 99, "user", "x"]]), "type 99 of a table of 3"),
    ("an op that is not there", _graph(7, [[99, [], [], []]]), "op 99 of a table of 2"),
    ("an undefined operand", _graph(7, [[0, [9], [], []]]), "%9 is used before it is defined"),
    ("a token without a kind", _graph(5, [_ext(2, b"f32")]), "a token without a kind"),
    ("a short complex number", _graph(5, [_ext(3, b"12")]), "a complex number of another size"),
    ("an attribute that is not there", _graph(7, [[0, [-9], [], []]]), "attribute 8, which is not there"),
    ("an attribute that is a map", _graph(5, [{}]), "an attribute that is a dict"),
    ("an attribute nested deep", _graph(5, [_nested(17)]), "an attribute that is nested too deeply"),
    ("an argument nested deep", _graph(7, [[0, [_nested(17)], [], []]]), "an argument that is nested too deeply"),
    ("a reference that is a string", _graph(7, [[0, [["x"]], [], []]]), "a reference that is a str"),
    ("a result without a type", _graph(7, [[0, [], [5], []]]), "a result without a type"),
    ("a value below zero", _graph(7, [[0, [], [-2, 0], []]]), "a value with the number -2"),
    ("regions nested deep", _graph(7, [[0, [], [], [_nested_region(9)]]]), "regions nested more than 8 deep"),
    ("an output that is a list", _graph(8, [[[0], "user", None, None]]), "Expected `int`, got `array`"),
    ("an output that is none of a graph's", _graph(8, [[9, "user", None, None]]), "%9 is used before it is defined"),
    ("too few locations", _set("locations.msgpack", b"\x92\x90\x90"), "0 locations for 2 nodes"),
    ("a location that is not there", _set("locations.msgpack", b"\x92\x90\x92\xff\x05"), "not in the table of 0"),
    ("weights of no input", _weights("x", [0], b"", 0), "there is no tensor 'g0.in1'"),
    ("weights of another shape", _weights("g0.in1", [1], bytes(4), 4), "'g0.in1' is F32[1], the input is f32[3, 2]"),
    ("weights beyond the end", _weights("g0.in1", [6], b"", 24), "its tensors end at 24 of 0 bytes"),
    ("weights of a lying size", _weights("g0.in1", [3, 2], bytes(4), 4), "lies from 0 to 4, not where or not as large"),
    ("weights of a negative size", _weights("g0.in1", [-1], b"", -4), "tensor 'g0.in1' is F32[-1]"),
    (
        "weights without a header",
        _set("weights.safetensors", b"\xff" * 8),
        "a header of 18446744073709551615 bytes",
    ),
    (
        "weights with a broken header",
        _set("weights.safetensors", b"\1" + bytes(7) + b"{"),
        "its header: Input data",
    ),
]


@pytest.mark.parametrize(("change", "message"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED])
def test_a_malformed_file_is_a_format_error(
    tmp_path: Path, small_graph: Graph, change: Callable[[Entries], object], message: str
) -> None:
    write(tmp_path / "g.fir", small_graph, {1: torch.ones(3, 2)})
    entries = _entries(tmp_path / "g.fir")
    change(entries)
    _rewrite(tmp_path / "g.fir", entries)
    with pytest.raises(IRFormatError, match=re.escape(message)) as caught:
        read(tmp_path / "g.fir")
    assert caught.value.where.startswith(str(tmp_path / "g.fir"))


def test_a_graph_that_breaks_a_rule_is_a_verification_error(tmp_path: Path, small_graph: Graph) -> None:
    write(tmp_path / "g.fir", small_graph)
    entries = _entries(tmp_path / "g.fir")
    _graph(2, [])(entries)
    _rewrite(tmp_path / "g.fir", entries)
    with pytest.raises(VerificationError, match="symbol b is used but not declared"):
        read(tmp_path / "g.fir")


def test_a_compressed_entry_is_refused(tmp_path: Path, small_graph: Graph) -> None:
    """A zip bomb is small on disk: only stored entries are read."""
    write(tmp_path / "g.fir", small_graph)
    entries = _entries(tmp_path / "g.fir")
    with zipfile.ZipFile(tmp_path / "g.fir", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    with pytest.raises(IRFormatError, match=r"the entry manifest\.json is compressed or encrypted"):
        read(tmp_path / "g.fir")


def test_what_is_no_zip_is_a_format_error(tmp_path: Path) -> None:
    (tmp_path / "g.fir").write_bytes(b"hello")
    with pytest.raises(IRFormatError, match=r"not a \.fir file: File is not a zip file") as caught:
        read(tmp_path / "g.fir")
    assert caught.value.next == "write the file again with fairlead.ir.write; it is damaged or foreign"


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "g.fir")


# ---- tensors as bytes


def test_data_of_another_size_than_its_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("3 bytes for f32[1], which has 4")):
        TensorData(DType.f32, (1,), memoryview(bytearray(3)))


def test_every_kind_of_argument_has_a_wire_form(rich_graph: Graph) -> None:
    """So that a new kind is not forgotten in the graph that the round trip uses."""
    kinds = {type(a) for n in rich_graph.nodes for a in _flat(n.args)}
    names = {k.__name__ for k in kinds}
    assert names == {"Value", "DimExpr", "Token", "Complex", "bool", "int", "float", "str", "tuple", "NoneType"}


def _flat(args: tuple[Any, ...]) -> Iterable[Any]:
    return itertools.chain(args, *(_flat(a) for a in args if isinstance(a, tuple)))
