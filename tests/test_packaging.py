"""Every wheel builds, carries what it must, and works installed beside core alone."""

from __future__ import annotations

import json
import re
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import PROJECTS, Run
from .environments import environment, required

OURS = sorted(name for name in PROJECTS if name != "fairlead-acme")
PLUGINS = sorted(name for name, folder in PROJECTS.items() if folder.parent.name == "plugins")
BACKENDS = sorted(PROJECTS.keys() - {"fairlead", "fairlead-onnx", "fairlead-conformance", *PLUGINS})

ON_CPU = sorted(set(BACKENDS) - {"fairlead-acme", "fairlead-cudagraphs", "fairlead-tensorrt"})
"""Those that a machine without a GPU runs; Acme has a test of its own, without torch."""

SDKS = ("apache-tvm", "jax", "onnx-ir", "onnxruntime", "openvino")

Install = Callable[..., str]


@pytest.fixture
def install(wheels: dict[str, Path], tmp_path: Path) -> Install:
    """Install wheels into an environment of their own; answers with its Python.

    It has what core and the Acme backend depend on, borrowed from this one, and nothing else: no torch, no SDK.
    """

    def install(*names: str) -> str:
        return environment(tmp_path, required("fairlead") | {"numpy"}, [wheels[name] for name in names])

    return install


@pytest.mark.parametrize("name", OURS)
def test_a_wheel_carries_what_it_must(wheels: dict[str, Path], name: str) -> None:
    package = name.replace("-", "_")
    with zipfile.ZipFile(wheels[name]) as wheel:
        files = set(wheel.namelist())
        text = wheel.read(f"{package}-0.1.0.dist-info/METADATA").decode()
    assert {f"{package}/__init__.py", f"{package}/py.typed", f"{package}-0.1.0.dist-info/licenses/LICENSE"} <= files
    tests = {file for file in files if re.search(r"(^|/)tests?/|(^|/)test_[^/]*\.py$|_test\.py$", file)}
    assert tests <= {"fairlead_conformance/test_cases.py"}, "what `pytest --pyargs` collects is no test of ours"
    assert not [file for file in files if "pyc" in file]
    header, _, description = text.partition("\n\n")
    assert "License-Expression: Apache-2.0" in header
    assert "Requires-Python: >=3.11" in header
    assert description.strip().startswith(f"# {name}")


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_s_wheel_describes_it_and_names_it_everywhere_alike(wheels: dict[str, Path], name: str) -> None:
    package, short = name.replace("-", "_"), name.removeprefix("fairlead-")
    with zipfile.ZipFile(wheels[name]) as wheel:
        files = wheel.namelist()
        (points,) = (wheel.read(file).decode() for file in files if file.endswith("entry_points.txt"))
    assert f"{package}/capabilities.toml" in files
    assert f"[fairlead.backends]\n{short} = {package}:backend" in points
    assert f"[torch_dynamo_backends]\nfairlead-{short} = " in points


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_s_wheel_names_it(wheels: dict[str, Path], name: str) -> None:
    package, short = name.replace("-", "_"), name.removeprefix("fairlead-")
    with zipfile.ZipFile(wheels[name]) as wheel:
        (points,) = (wheel.read(f).decode() for f in wheel.namelist() if f.endswith("entry_points.txt"))
    assert f"[fairlead.plugins]\n{short} = {package}:plugin" in points


def test_core_depends_on_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "onnx", "transformers", "matplotlib"}
    assert required("fairlead") & heavy == set()


def test_the_extra_all_is_the_sum_of_the_others() -> None:
    extras = tomllib.loads((PROJECTS["fairlead"] / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    (everything,) = extras.pop("all")
    assert set(re.findall(r"\w+", everything)) == {"fairlead", *extras}
    assert {name for name in BACKENDS if name != "fairlead-acme"} <= {
        line.partition(">")[0] for (line, *_) in extras.values()
    }


@pytest.mark.parametrize("name", BACKENDS)
def test_a_wheel_installs_alone_beside_core(install: Install, run: Run, name: str) -> None:
    result = run("-m", "fairlead", "backends", "--json", python=install("fairlead", name))
    assert result.stderr == ""
    found = {info["name"]: info["status"] for info in json.loads(result.stdout)}
    assert found == {"eager": "unprobed", name.removeprefix("fairlead-"): "unprobed"}


def test_without_torch_and_without_its_sdk_a_backend_says_what_is_missing(install: Install, run: Run) -> None:
    result = run("-m", "fairlead", "doctor", "--json", python=install(*(PROJECTS.keys() - set(PLUGINS))))
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    found = {row["name"]: row for row in report["backends"]}
    assert report["system"]["torch"] == "not installed"
    assert found.pop("acme")["status"] == "ready"
    assert {row["status"] for row in found.values()} == {"unavailable"}, found
    missing = {name: row["reason"] for name, row in found.items()}
    assert all(re.search("not installed|No module named", reason) for reason in missing.values()), missing


RUN_ACME = """
import fairlead, numpy
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, TensorType, Value
from fairlead.registry import registry

backend = registry.ready("acme")
x, w = Value(0, TensorType(DType.f32, (2, 3))), Value(1, TensorType(DType.f32, (4, 3)))
y, z = Value(2, TensorType(DType.f32, (2, 4))), Value(3, TensorType(DType.f32, (2, 4)))
nodes = (Node("aten.linear.default", (x, w, None), (y,)), Node("aten.relu.default", (y,), (z,)))
graph = Graph("forward", Kind.inference, (Input(x), Input(w, Role.parameter)), nodes, (Output(z),))
assert all(backend.supports(node).accepted for node in graph.nodes)
weight = numpy.linspace(-1, 1, 12, dtype="f4").reshape(4, 3)
executable = backend.compile(graph, backend.options_type(), {1: weight})
given = numpy.linspace(-2, 2, 6, dtype="f4").reshape(2, 3)
(result,) = executable([given])
numpy.testing.assert_array_equal(result, numpy.maximum(given @ weight.T, 0))
"""


def test_a_vendor_s_backend_runs_a_graph_without_torch(install: Install, run: Run) -> None:
    result = run("-c", RUN_ACME, python=install("fairlead", "fairlead-acme"))
    assert (result.returncode, result.stderr) == (0, "")


RUN_ALONE = """
import importlib.metadata, sys, torch, fairlead

name, *needed = sys.argv[1:]
assert {info.name for info in fairlead.list_backends()} == {"eager", name, *needed}, fairlead.list_backends()
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16)).eval()
x = torch.randn(3, 8)
compiled = fairlead.compile(model, backend=name, fallback=())
with torch.no_grad():
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
print(*sorted(d.name for d in importlib.metadata.distributions()))
"""


@pytest.mark.parametrize("name", ON_CPU)
def test_a_backend_compiles_with_core_and_what_its_wheel_depends_on_alone(
    wheels: dict[str, Path], tmp_path: Path, run: Run, name: str
) -> None:
    needed = required(name)
    python = environment(tmp_path, needed - set(OURS), [wheels[w] for w in {name, *needed} & set(OURS)])
    quiet = ("-W", "ignore:Failed to initialize NumPy:UserWarning")  # torch, of which NumPy is no dependency
    backends = [wheel.removeprefix("fairlead-") for wheel in (name, *sorted(needed & set(BACKENDS)))]
    result = run(*quiet, "-c", RUN_ALONE, *backends, python=python)
    assert (result.returncode, result.stderr) == (0, "")
    assert set(result.stdout.split()) & set(SDKS) == needed & set(SDKS)
