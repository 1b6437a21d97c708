"""What a machine without a GPU can say of CUDA: what is declined, why, and how jax is started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import jax
import pytest

from fairlead.ir import DType, Graph, Input, Kind, Node, Output, TensorType, Value
from fairlead_openxla import _devices, backend


@pytest.fixture
def with_plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_devices, "cuda_plugin", lambda: ("jax-cuda13-plugin", "1"))
    before = jax.config.jax_platforms
    jax.config.update("jax_platforms", None)
    yield
    jax.config.update("jax_platforms", before)


def value(id_: int, device: str, *shape: int) -> Value:
    return Value(id_, TensorType(DType.f32, shape, device=device))


def added(*devices: str, shape: tuple[int, ...] = (3,), other: tuple[int, ...] = (3,)) -> Node:
    left, right, out = devices
    return Node("aten.add.Tensor", (value(0, left, *shape), value(1, right, *other), 1), (value(2, out, *shape),))


def test_without_a_plugin_what_is_on_cuda_is_declined_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_devices, "cuda_plugin", lambda: None)
    answer = backend.supports(added("cuda:0", "cuda:0", "cuda:0"))
    assert not answer.accepted
    assert 'pip install "jax[cuda13]"' in answer.reason
    assert backend.supports(added("cpu", "cpu", "cpu")).accepted


@pytest.mark.usefixtures("with_plugin")
def test_a_jax_that_is_told_to_leave_cuda_out_declines_it() -> None:
    assert backend.supports(added("cuda:0", "cuda:0", "cuda:0")).accepted
    jax.config.update("jax_platforms", "cpu")
    assert "jax is told to use cpu alone" in backend.supports(added("cuda:0", "cuda:0", "cuda:0")).reason
    jax.config.update("jax_platforms", "cuda,cpu")
    assert backend.supports(added("cuda:0", "cuda:0", "cuda:0")).accepted


@pytest.mark.usefixtures("with_plugin")
def test_of_the_cpu_a_program_on_cuda_takes_numbers_alone() -> None:
    assert backend.supports(added("cuda:0", "cpu", "cuda:0", other=())).accepted
    assert "a tensor on the CPU" in backend.supports(added("cuda:0", "cpu", "cuda:0")).reason
    assert "a copy to the CPU" in backend.supports(added("cuda:0", "cuda:0", "cpu")).reason


@pytest.mark.usefixtures("with_plugin")
def test_a_graph_of_two_cuda_devices_is_declined() -> None:
    nodes = [Node("aten.neg.default", (value(i, f"cuda:{i}", 3),), (value(2 + i, f"cuda:{i}", 3),)) for i in range(2)]
    graph = Graph(
        "g",
        Kind.inference,
        tuple(Input(value(i, f"cuda:{i}", 3)) for i in range(2)),
        tuple(nodes),
        tuple(Output(value(2 + i, f"cuda:{i}", 3)) for i in range(2)),
        (),
    )
    assert backend.declines_graph(graph) == "tensors on cuda:0 and cuda:1: a program of XLA is of one device"


STARTS = """
import os, torch
from jax._src import xla_bridge
from fairlead_openxla import _devices, OpenXLAOptions, backend
def start():
    print(os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE"))
    raise RuntimeError("not a device")
xla_bridge.register_backend_factory("other", start, priority=-1, fail_quietly=True)
"""


def printed(code: str, **variables: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE")}
    command = [sys.executable, "-c", STARTS + code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env | variables).stdout.split()


@pytest.mark.parametrize(("given", "seen"), [({}, "false"), ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, "true")])
def test_jax_starts_without_taking_a_gpus_memory_unless_it_is_told_to(given: dict[str, str], seen: str) -> None:
    code = """
_devices.cuda_plugin = lambda: None
_devices.jax_device(torch.device("cpu"))
print(os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE"))
"""
    assert printed(code, **given) == [seen, given.get("XLA_PYTHON_CLIENT_PREALLOCATE", "None")]


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="this jax starts every device to lower for one")
def test_a_graph_on_the_cpu_starts_no_other_device() -> None:
    code = """
from fairlead.ir import Builder
_devices.cuda_plugin = lambda: ("jax-cuda13-plugin", "1")
b = Builder("g")
x, weight = b.input("f32[2, 3]", "x"), b.input("f32[4, 3]", "weight")
b.output(b.op("aten.linear.default", x, weight, None))
given, w = torch.randn(2, 3), torch.randn(4, 3)
run = backend.compile(b.graph(), OpenXLAOptions(), {1: w})
run = backend.load(backend.dump(run), b.graph(), OpenXLAOptions(), {1: w})
torch.testing.assert_close(run([given])[0], given @ w.T)
print(xla_bridge.backends_are_initialized())
"""
    assert printed(code) == ["False"]
