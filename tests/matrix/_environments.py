"""An environment for a release of torch: the repository's wheels and their tests on a CPU, whatever build it is."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from tests.matrix._stand_ins import write_stand_ins

__all__ = ["ROOT", "environment", "gigabytes"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "matrix"
WHEELS = (
    "core",
    "backends/onnx",
    "backends/inductor",
    "backends/onnxrt",
    "backends/openvino",
    "backends/openxla",
    "backends/ipex",
    "backends/tvm",
    "backends/cudagraphs",
    "backends/tensorrt",
)
NEEDS = ("numpy", "transformers", "onnxruntime", "onnx-ir", "openvino", "jax", "pytest", "hypothesis", "expecttest",
         "hatchling", "editables", "msgspec", "pluggy", "pyelftools", "rich", "safetensors", "typer",
         "ml_dtypes")  # fmt: skip
"""What the wheels and their tests use beside torch."""

_REQUIREMENTS = """
import json
from importlib.metadata import requires
from packaging.requirements import Requirement
found = [Requirement(line) for line in requires("torch") or []]
print(json.dumps([str(r) for r in found if not r.marker or r.marker.evaluate({"extra": ""})]))
"""
_RELEASED = ("torch", "setuptools")
"""How the constraints start that hold for one release of torch alone."""

_SDK = ("nvidia", "cuda", "triton")
"""How the distributions start that only a GPU needs."""


def environment(version: str) -> Path:
    """The Python of an environment with this release of torch; this one where it has it.

    It is made at the first call, and anew when what it holds has changed.
    """
    if metadata.version("torch").startswith(f"{version}."):
        return Path(sys.executable)
    folder = FOLDER / version
    python = folder / "bin" / "python"
    ready, content = folder / "ready", "\n".join((*WHEELS, *NEEDS))
    if ready.exists() and ready.read_text() == content:
        return python
    _run(sys.executable, "-m", "venv", "--clear", str(folder))
    _pip(python, "packaging", *NEEDS)
    _pip(python, "--no-deps", f"torch=={version}.*", constrained=False)
    needs = [r for r in json.loads(_run(str(python), "-c", _REQUIREMENTS)) if not r.startswith(_SDK)]
    _pip(python, *needs)
    site = _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    write_stand_ins(Path(site))
    _pip(python, "--no-deps", "--no-build-isolation", *(f"--editable={ROOT / w}" for w in WHEELS), constrained=False)
    ready.write_text(content)
    return python


def gigabytes(version: str) -> float:
    """What the environment of a release takes on disk; 0 where there is none of its own."""
    return sum(p.lstat().st_size for p in (FOLDER / version).rglob("*")) / 1e9


def _pip(python: Path, *arguments: str, constrained: bool = True) -> None:
    """Install what the constraints name, in their versions; but for torch and for setuptools, which torch limits."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = FOLDER / "constraints.txt"
    constraints.write_text("\n".join(line for line in lines if not line.startswith(_RELEASED)) + "\n")
    chosen = ("--constraint", str(constraints)) if constrained else ()
    _run(str(python), "-m", "pip", "install", "--quiet", *chosen, *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
