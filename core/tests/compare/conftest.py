"""One real run of the command that most tests here look at: real processes, real wheels in a folder, real numbers."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from fairlead._compare import Report
from tests import forked

VENDORS = """
import os

from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support


class Vendor:
    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(devices=("cpu",), dtypes=("f32",), training=True, dynamic_shapes=True)

    def __init__(self, name):
        self.name = name
        if name == "holding":
            self.capabilities = Capabilities(devices=("cpu",), dtypes=("f32",), bakes_constants=True)

    def probe(self):
        return Probe(ok=self.name != "absent", reason="its driver is missing" if self.name == "absent" else "")

    def supports(self, node):
        return Support.no("no such kernel") if self.name == "picky" and "gelu" in node.op else Support.yes()

    def compile(self, graph, options, constants):
        from fairlead.interpret import to_fx

        if self.name == "crashing":
            os.abort()
        if self.name == "holding" and constants:
            raise MemoryError(f"no room for {len(constants)} weights")
        return Run(to_fx(graph), self.name)


class Run:
    baked = frozenset()
    fresh_outputs = True

    def __init__(self, function, name):
        self.function = function
        self.name = name
        self.kept = None

    def __call__(self, inputs):
        outputs = list(self.function(*inputs))
        if self.name == "wrong":
            return [output * 1.001 for output in outputs]
        if self.name == "reusing":
            self.kept = self.kept or outputs
            for kept, output in zip(self.kept, outputs):
                kept.copy_(output)
            return self.kept
        return outputs


names = ("absent", "crashing", "holding", "picky", "reusing", "wrong")
absent, crashing, holding, picky, reusing, wrong = map(Vendor, names)
"""

NAMES = ("absent", "crashing", "picky", "reusing", "wrong")


@dataclass(frozen=True)
class Run:
    """What the command left behind."""

    status: int
    stdout: str
    stderr: str
    html: str

    @property
    def report(self) -> Report:
        return msgspec.json.decode(self.stdout, type=Report)


def fairlead(*arguments: str, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would."""
    path = {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])} if site else {}
    given = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "160", **path}
    return forked.run(["-m", "fairlead", *arguments], given, timeout=300)


@pytest.fixture(scope="session")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of a vendor whose backends misbehave, each in its own way."""
    site = tmp_path_factory.mktemp("site")
    info = site / "vendors-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendors\nVersion: 1.0\n")
    lines = "".join(f"{name} = vendors:{name}\n" for name in (*NAMES, "holding"))
    (info / "entry_points.txt").write_text(f"[fairlead.backends]\n{lines}")
    (site / "vendors.py").write_text(VENDORS)
    return site


@pytest.fixture(scope="session")
def run(vendors: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """``fairlead compare mlp`` with all of them."""
    page = tmp_path_factory.mktemp("report") / "report.html"
    backends = ",".join(("eager", *NAMES))
    arguments = ("--backends", backends, "--baseline", "none", "--seconds", "0", "--repeat", "10", "--threads", "1")
    done = fairlead("compare", "mlp", *arguments, "--json", "-", "--html", str(page), site=vendors)
    return Run(done.returncode, done.stdout, done.stderr, page.read_text("utf-8") if page.exists() else "")
