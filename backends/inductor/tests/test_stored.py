"""Stored programs: a process that loads one compiles no C++ for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch
from torch._inductor import codecache

from fairlead import ir
from fairlead.errors import ArtifactFormatError, ArtifactUnsupportedError
from fairlead.ir import Builder, Graph, Kind, Role
from fairlead_inductor import InductorOptions, _stored, backend


def sines(rows: int | str = 8, *, kind: Kind = Kind.inference, role: Role = Role.user) -> Graph:
    b = Builder("g", kind)
    x = b.input(f"f32[{rows}, 96]", role=role)
    b.output(b.op("aten.cos.default", b.op("aten.sin.default", x)))
    return b.graph()


def kernels(data: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = msgspec.msgpack.decode(data)["libraries"]
    return {name: library for name, library in found.items() if ".main." in name}


def test_a_process_that_loads_it_compiles_no_kernel(tmp_path: Path) -> None:
    x = torch.randn(8, 96)
    program = backend.compile(sines(), InductorOptions(), {})
    (tmp_path / "stored").write_bytes(backend.dump(program))
    (tmp_path / "graph").write_bytes(ir.to_bytes(sines()))
    torch.save(x, tmp_path / "x.pt")
    script = """
import os, sys, torch
from pathlib import Path
folder = Path(sys.argv[1])
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
from torch._inductor.cpp_builder import CppBuilder
from fairlead import ir
from fairlead_inductor import InductorOptions, backend

built, build = [], CppBuilder.build
CppBuilder.build = lambda self: (built.append(self.get_target_file_path()), build(self))
(graph,) = ir.from_bytes((folder / "graph").read_bytes()).graphs
program = backend.load((folder / "stored").read_bytes(), graph, InductorOptions(), {})
torch.save(program([torch.load(folder / "x.pt")])[0], folder / "out.pt")
assert [b for b in built if ".main." in b] == [], built
assert [b for b in (folder / "cache").glob("*/*.main.so")] != []
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=300)
    assert torch.equal(torch.load(tmp_path / "out.pt"), program([x])[0])


def test_code_that_was_loaded_before_is_stored_as_well() -> None:
    first, second = (kernels(backend.dump(backend.compile(sines(9), InductorOptions(), {}))) for _ in range(2))
    assert first == second
    assert first


def test_what_is_compiled_at_its_call_is_stored_after_it() -> None:
    varying = backend.compile(sines("n"), InductorOptions(), {})
    assert kernels(backend.dump(varying)) == {}
    varying([torch.randn(11, 96)])
    assert kernels(backend.dump(varying))


def test_how_saved_tensors_lie_is_left_to_the_first_call() -> None:
    backward = backend.compile(sines(kind=Kind.backward, role=Role.saved), InductorOptions(), {})
    assert kernels(backend.dump(backward)) == {}
    x = torch.randn(96, 8).t()
    torch.testing.assert_close(backward([x])[0], x.sin().cos())
    assert kernels(backend.dump(backward))


def test_a_library_that_is_gone_is_left_out() -> None:
    program = backend.compile(sines(10), InductorOptions(), {})
    (name,) = kernels(backend.dump(program))
    Path(codecache.get_path(*name.split(".", 1))[2]).unlink()
    assert kernels(backend.dump(program)) == {}


@pytest.mark.parametrize("data", [b"", b"\x80", msgspec.msgpack.encode({"graph": "another", "libraries": {}})])
def test_what_was_stored_of_another_graph_is_refused(data: bytes) -> None:
    with pytest.raises(ArtifactFormatError, match="not what inductor stored of this graph"):
        backend.load(data, sines(), InductorOptions(), {})


def test_a_library_goes_nowhere_but_into_torchs_cache(tmp_path: Path) -> None:
    libraries = {f"../../../..{tmp_path}/x": b""}
    data = msgspec.msgpack.encode({"graph": ir.fingerprint(sines()), "libraries": libraries})
    with pytest.raises(ArtifactFormatError):
        _stored.lay_out_libraries(data, sines())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gpu
def test_programs_on_cuda_are_not_stored() -> None:
    b = Builder()
    b.output(b.op("aten.sin.default", b.input("f32[8] @cuda:0")))
    with pytest.raises(ArtifactUnsupportedError, match="programs on CUDA are not stored"):
        backend.dump(backend.compile(b.graph(), InductorOptions(), {}))
