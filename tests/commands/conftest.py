"""Files and models that the tests of several commands start from, and a command run as a user runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import ir
from fairlead.ir import DType, Graph, Input, Kind, Location, Node, Output, Role, TensorType, Value
from tests import forked

Command = Callable[..., "subprocess.CompletedProcess[str]"]

MODELS = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 4)

    def forward(self, x):
        return torch.relu(self.fc(x))


class Broken(Net):
    def forward(self, x):
        x = torch.relu(self.fc(x))
        torch._dynamo.graph_break()
        return x + 1


class Past(torch.nn.Module):
    def forward(self, x):
        return x[1:].as_strided((2,), (1,)) + 1


class Nothing(torch.nn.Module):
    def forward(self, x):
        return x


def net():
    return Net(), (torch.randn(3, 8),), {"0": {0: "batch"}}


def broken():
    return Broken(), (torch.randn(3, 8),)


def past():
    return Past(), (torch.randn(4),)


def nothing():
    return Nothing(), (torch.randn(4),)


def raises():
    raise RuntimeError("no weights today")


def mismatch():
    return Net(), (torch.randn(3, 7),)
"""


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run ``fairlead`` with arguments in an empty folder that has ``models.py``, in a process of its own."""
    (tmp_path / "models.py").write_text(MODELS)

    def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", **environment}
        return forked.run(["-m", "fairlead", *arguments], given, folder=tmp_path, timeout=120)

    return command


def small(op: str = "aten.relu.default") -> Graph:
    """A linear op and an activation."""
    x, weight = Value(0, TensorType(DType.f32, (3, 8))), Value(1, TensorType(DType.f32, (4, 8)))
    y, z = (Value(i, TensorType(DType.f32, (3, 4))) for i in (2, 3))
    here = Location("/home/ann/model.py", 7, "forward", "fc")
    nodes = (Node("aten.linear.default", (x, weight, None), (y,), here), Node(op, (y,), (z,)))
    inputs = (Input(x, name="x"), Input(weight, Role.parameter, "fc.weight"))
    return Graph("forward", Kind.inference, inputs, nodes, (Output(z),))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with the small graph and without its weights."""
    path = tmp_path / "small.fir"
    ir.write(path, small(), weights="none")
    return path


def error(result: subprocess.CompletedProcess[str]) -> str:
    """The first line of a message of three, on stderr, of a command that ended with status 2."""
    assert (result.returncode, result.stdout) == (2, ""), result.stdout + result.stderr
    what, where, advice = result.stderr.splitlines()
    assert where.startswith("  from: ")
    assert advice.startswith("  next: ")
    return what
