"""Who may import whom, as docs/architecture.md draws it: by the modules' text, and by what an import really loads."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import REPOSITORY, Run

CORE = REPOSITORY / "core/src/fairlead"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "_messages"}),
    frozenset({"ir", "processor", "_torch_types"}),
    frozenset({"backend", "numpy"}),
    frozenset({"_settings", "_stages", "_plugins", "hooks"}),
    frozenset({"_contract", "_registry", "registry", "_defaults", "_options", "_pairs", "_hook_calls", "passes"}),
    frozenset(
        {
            "placement",
            "_placement_table",
            "bisection",
            "explanation",
            "partition",
            "_subgraph",
            "interpret",
            "_accuracy",
            "_signatures",
            "_eager",
            "artifacts",
        }
    ),
    frozenset({"_debug", "_failures", "_program", "_results", "_capture", "_compile", "_first_call", "_second_call"})
    | {"_benchmark", "_heap", "_original", "_pieces", "_precision", "_sink", "_verified", "_worth"},
    frozenset(
        {"_arguments", "_dims", "_direct", "_explain", "_freeze", "_handle", "_progress", "_shapes", "_user"}
        | {"_step", "torch"}
    ),
    frozenset({"_models", "_compare", "_page"}),
    frozenset({"_bisect"}),
    frozenset({"_cli", "__init__", "__main__"}),
)
"""The parts of core, lowest first: a part imports from its own layer and from those below."""

WITHOUT_TORCH = frozenset().union(
    *LAYERS[:5], {"placement", "_placement_table", "bisection", "explanation", "partition", "_page", "_cli"}
) - {"_torch_types", "processor"}
"""The parts of core that import torch nowhere, not even in a function."""

SDKS = {
    "inductor": ("torch",),
    "onnxrt": ("onnxruntime", "onnx_ir"),
    "openvino": ("openvino", "onnx_ir"),
    "openxla": ("jax", "jaxlib"),
    "ipex": ("torch",),
    "tvm": ("tvm", "tvm_ffi"),
    "cudagraphs": ("torch",),
    "tensorrt": ("torch", "tensorrt", "tensorrt_rtx", "onnx_ir"),
    "onnx": ("onnx_ir",),
}
"""What each wheel must not load before it is used."""


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, in functions too, but not for the type checker alone."""
    tree = ast.parse(path.read_text("utf-8"))
    for block in [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]:
        block.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part(module: str) -> str:
    """The part of core that a dotted name is in."""
    name = module.split(".")[1] if "." in module else "__init__"
    return name if (CORE / name).is_dir() or (CORE / f"{name}.py").exists() else "__init__"


def files(source: Path) -> list[Path]:
    return sorted(p for p in source.rglob("*.py"))


def of_core(path: Path) -> str:
    relative = path.relative_to(CORE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def test_every_part_of_core_has_its_layer() -> None:
    assert {of_core(path) for path in files(CORE)} == frozenset().union(*LAYERS)


@pytest.mark.parametrize("path", files(CORE), ids=lambda p: str(p.relative_to(CORE)))
def test_core_imports_downwards(path: Path) -> None:
    own = of_core(path)
    used = {part(m) for m in imports(path) if m == "fairlead" or m.startswith("fairlead.")}
    assert {name for name in used if layer(name) > layer(own)} == set()


@pytest.mark.parametrize("name", sorted(WITHOUT_TORCH))
def test_what_needs_no_torch_imports_none(name: str) -> None:
    found = [p for p in files(CORE) if of_core(p) == name]
    assert found
    assert [str(p) for p in found if any(m.split(".")[0] == "torch" for m in imports(p))] == []


def test_core_names_no_backend_and_no_sdk() -> None:
    used = {m.split(".")[0] for path in files(CORE) for m in imports(path)}
    assert {m for m in used if m.startswith("fairlead_")} == set()
    assert used & {"onnxruntime", "openvino", "onnx_ir", "onnx"} == set()


@pytest.mark.parametrize("name", sorted(SDKS))
def test_a_wheel_sees_only_what_is_public(name: str) -> None:
    own, folder = f"fairlead_{name}", REPOSITORY / "backends" / name
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {need.partition(">")[0].replace("-", "_") for need in project["dependencies"]}
    for path in files(folder / "src"):
        ours = [m for m in imports(path) if m.split(".")[0].startswith("fairlead")]
        others = [m for m in ours if m.split(".")[0] != own]
        assert [m for m in others if any(word.startswith("_") for word in m.split("."))] == [], path
        assert {m.split(".")[0] for m in others} <= needed, path


@pytest.mark.parametrize("folder", sorted((REPOSITORY / "plugins").glob("*/src")), ids=lambda p: p.parent.name)
def test_a_plugin_sees_only_what_is_public_and_no_backend(folder: Path) -> None:
    own = f"fairlead_{folder.parent.name}"
    for path in files(folder):
        ours = [m for m in imports(path) if m.split(".")[0].startswith("fairlead")]
        core = [m for m in ours if m.split(".")[0] == "fairlead"]
        assert [m for m in core if any(word.startswith("_") for word in m.split("."))] == [], path
        assert {m.split(".")[0] for m in ours} <= {"fairlead", own}, path


def test_conformance_sees_only_what_is_public_and_names_no_backend() -> None:
    backends = {p.name for p in (REPOSITORY / "backends").iterdir()}
    for path in files(REPOSITORY / "conformance/src"):
        core = [m for m in imports(path) if m.split(".")[0] == "fairlead"]
        assert [m for m in core if any(word.startswith("_") for word in m.split("."))] == [], path
        others = {m.split(".")[0] for m in imports(path) if m.startswith("fairlead_")} - {"fairlead_conformance"}
        assert others == set(), path
        strings = {n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)}
        assert strings & backends == set(), path


LOADED = "import sys; import {module}; print(*(m for m in {forbidden!r} if m in sys.modules))"


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("fairlead", ("torch", "numpy", "pluggy", "typer")),
        ("fairlead.ir", ("torch", "numpy")),
        ("fairlead.numpy", ("torch", "ml_dtypes")),
        ("fairlead.registry", ("torch", "numpy", "typer")),
        ("fairlead._cli", ("torch", "typer", "rich")),
        ("fairlead._cli.app", ("torch", "numpy")),
        ("fairlead_conformance", ("torch", "numpy", "pytest")),
        *((f"fairlead_{name}", sdks) for name, sdks in SDKS.items()),
    ],
)
def test_an_import_loads_nothing_that_is_not_needed(run: Run, module: str, forbidden: tuple[str, ...]) -> None:
    result = run("-c", LOADED.format(module=module, forbidden=forbidden))
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "", "")


READS_NONE = """
import importlib.metadata
def read(*args, **kwargs):
    raise AssertionError("entry points were read")
importlib.metadata.entry_points = read
import fairlead, fairlead.registry, fairlead.hooks
"""


def test_importing_fairlead_reads_no_entry_points(run: Run) -> None:
    result = run("-c", READS_NONE)
    assert (result.returncode, result.stderr) == (0, "")
