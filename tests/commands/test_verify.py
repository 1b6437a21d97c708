"""``fairlead verify``: valid or not by the exit status, and what is in the file."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import msgspec

from fairlead import ir
from fairlead.ir import DType, Output, TensorType, Value

from .conftest import Command, small


def test_a_valid_file_is_described(command: Command, file: Path) -> None:
    result = command("verify", file.name, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["valid"] is True
    assert found["weights"] == "none"
    assert found["fingerprint"] == ir.fingerprint(ir.read(file).module)
    assert found["bytes"] == file.stat().st_size
    assert set(found["ops"]) == {"aten.linear.default", "aten.relu.default"}
    (graph,) = found["graphs"]
    assert (graph["name"], graph["nodes"], graph["inputs"], graph["fingerprint"]) == (
        "forward",
        2,
        2,
        ir.fingerprint(small()),
    )


def test_the_table_names_ops_and_graphs(command: Command, file: Path) -> None:
    result = command("verify", file.name)
    assert result.returncode == 0
    assert all(word in result.stdout for word in ("valid", "aten.relu.default", "forward", "IR version"))


def damaged(file: Path) -> Path:
    """A copy with the last bytes of the graph gone."""
    path = file.with_name("damaged.fir")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info, data[:-3] if info.filename == "graphs.msgpack" else data)
    return path


def test_a_damaged_file_is_exit_status_1_with_the_entry_that_is_wrong(command: Command, file: Path) -> None:
    result = command("verify", damaged(file).name)
    assert (result.returncode, result.stdout) == (1, "")
    what, where, _ = result.stderr.splitlines()
    assert what.startswith("FL601: ")
    assert "entry graphs.msgpack" in where


def test_a_damaged_file_as_json(command: Command, file: Path) -> None:
    result = command("verify", damaged(file).name, "--json")
    assert (result.returncode, result.stderr) == (1, "")
    found = json.loads(result.stdout)
    assert (found["valid"], found["code"], found["graphs"]) == (False, "FL601", [])


def test_a_newer_file_is_told_so(command: Command, file: Path) -> None:
    path = file.with_name("newer.fir")
    shutil.copy(file, path)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == "manifest.json":
                manifest = json.loads(data)
                manifest["ir_version"] = [99, 0]
                data = json.dumps(manifest).encode()
            new.writestr(info, data)
    result = command("verify", path.name)
    assert result.returncode == 1
    assert result.stderr.startswith("FL602: ")


def test_a_type_that_the_op_does_not_make_is_exit_status_1(command: Command, file: Path) -> None:
    graph = small()
    wide = Value(3, TensorType(DType.f64, (3, 4)))
    wrong = msgspec.structs.replace(graph.nodes[1], results=(wide,))
    ir.write(file, msgspec.structs.replace(graph, nodes=(graph.nodes[0], wrong), outputs=(Output(wide),)))
    result = command("verify", file.name)
    assert result.returncode == 1
    assert "has results of type f32[3, 4]" in result.stderr.splitlines()[0]
