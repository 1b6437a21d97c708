"""Fixtures that tests across wheels share: wheels as real as installed ones, and processes to try them in."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from . import forked as _forked

REPOSITORY = Path(__file__).parent.parent

collect_ignore = ["wheels"]
"""Wheels of others: their tests run where they are installed."""

PROJECTS = {
    tomllib.loads(path.read_text("utf-8"))["project"]["name"]: path.parent
    for pattern in ("core", "backends/*", "plugins/*", "conformance", "tests/wheels/*")
    for path in REPOSITORY.glob(f"{pattern}/pyproject.toml")
}
"""The folder of each wheel, by the name of its distribution."""

BACKEND = """
from fairlead.backend import Capabilities, NoOptions, Probe, Support


class Backend:
    name = "{name}"
    api_version = 1
    capabilities = Capabilities(devices=("cpu",), dtypes=("f32",))
    options_type = NoOptions

    def probe(self):
        return Probe(ok=True, devices=("cpu",), versions={{"sdk": "1.2"}})

    def supports(self, node):
        return Support.yes()

    def compile(self, graph, options, constants):
        raise NotImplementedError


backend = Backend()
"""

CAPABILITIES = 'devices = ["cpu"]\ndtypes = ["f32"]\n'


class Site:
    """A folder on ``sys.path`` that wheels are put into, unpacked: a module and a ``.dist-info`` each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def wheel(self, distribution: str, version: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
        """Metadata alone: ``entry_points`` by group and name."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"[{g}]\n" + "".join(f"{n} = {v}\n" for n, v in names.items()) for g, names in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))

    def package(self, name: str, source: str, capabilities: str | None = CAPABILITIES) -> None:
        """An importable package."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(textwrap.dedent(source))
        if capabilities is not None:
            (folder / "capabilities.toml").write_text(capabilities)

    def backend(self, name: str, source: str | None = None, capabilities: str | None = CAPABILITIES) -> None:
        """A wheel ``vendor-<name>`` 2.0 with the package ``vendor_<name>``; it conforms unless ``source`` says else."""
        self.package(f"vendor_{name}", source or BACKEND.format(name=name), capabilities)
        self.wheel(f"vendor-{name}", "2.0", {"fairlead.backends": {name: f"vendor_{name}:backend"}})

    def command(self, name: str, source: str) -> None:
        """A wheel ``tool-<name>`` 1.5 whose subcommand is the function ``command`` of the module ``tool_<name>``."""
        module = f"tool_{name}"
        self.package(module, source, None)
        self.wheel(f"tool-{name}", "1.5", {"fairlead.commands": {name: f"{module}:command"}})

    def plugin(self, name: str, source: str) -> None:
        """A wheel ``plugin-<name>`` 1.5 whose plugin is the module ``plugin_<name>``."""
        self.package(f"plugin_{name}", source, None)
        self.wheel(f"plugin-{name}", "1.5", {"fairlead.plugins": {name: f"plugin_{name}"}})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder for wheels, on the path of this process and of those that it starts."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    yield Site(folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
    importlib.invalidate_caches()


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run() -> Run:
    """Run Python with arguments, in a process of its own, on one thread."""

    def run(*arguments: str, python: str = sys.executable, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", **environment},
        )

    return run


@pytest.fixture
def forked() -> Run:
    """As `run`, from a process that has torch imported."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return _forked.run(arguments, {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", **environment})

    return run


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All wheels, built with the build backend that pip would call, by the name of the distribution."""
    folder = tmp_path_factory.mktemp("wheels")
    for project in PROJECTS.values():
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    return {path.name.split("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}
