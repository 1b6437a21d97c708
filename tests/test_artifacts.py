"""Stored executables: the same results in another process, and a refusal wherever anything differs."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import pytest
import torch

from fairlead import artifacts, ir
from fairlead.backend import Backend, Probe, Serializable
from fairlead.errors import ArgumentError, ArtifactFormatError, ArtifactMismatchError, ArtifactUnsupportedError
from fairlead.hooks import CompileJob
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, TensorType, Value
from fairlead.registry import registry

from . import forked

SECRET = b"known to this test alone"

CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("onnxrt", {"spinning": False}),
    ("openvino", {"streams": 2}),
    ("openxla", {"threads": "one"}),
    ("ipex", {"finite": True}),
    ("tvm", {"threads": "one"}),
    ("inductor", {"config": {"cpp.threads": 1}}),
]
"""An option of each backend, other than its default."""


@pytest.fixture(params=["eager", "inductor", "onnxrt", "openvino", "openxla", "ipex", "tvm"])
def backend(request: pytest.FixtureRequest) -> Backend[Any]:
    return registry.ready(request.param)


def graph(op: str = "aten.relu.default") -> Graph:
    """``op(x @ weight.T)`` of b x 8 rows, with a weight of 3 x 8."""
    x, w = Value(0, TensorType(DType.f32, ("b", 8))), Value(1, TensorType(DType.f32, (3, 8)))
    product, out = (Value(i, TensorType(DType.f32, ("b", 3))) for i in (2, 3))
    nodes = (Node("aten.linear.default", (x, w, None), (product,)), Node(op, (product,), (out,)))
    symbols = (ir.Symbol("b", 1, None, (0, 0)),)
    return Graph("g", Kind.inference, (Input(x), Input(w, Role.parameter)), nodes, (Output(out),), symbols)


def job(backend: Backend[Any], weight: torch.Tensor | None = None, **options: object) -> CompileJob:
    given = torch.arange(24.0).sub(11).reshape(3, 8) if weight is None else weight
    constants = {1: given} if backend.capabilities.bakes_constants else {}
    return CompileJob(backend, graph(), backend.options_type(**options), constants)


def packed(given: CompileJob) -> bytes:
    executable = given.backend.compile(given.graph, given.options, given.constants)
    return artifacts.pack(given, executable, SECRET)


def run(executable: Any, weight: torch.Tensor) -> torch.Tensor:
    x = torch.linspace(-1, 1, 40).reshape(5, 8)
    (out,) = executable([x] if executable.baked else [x, weight])
    return torch.from_dlpack(out)


def test_another_process_computes_the_same_with_it(backend: Backend[Any], tmp_path: Path) -> None:
    weight = torch.randn(3, 8)
    given = job(backend, weight)
    executable = given.backend.compile(given.graph, given.options, given.constants)
    (tmp_path / "artifact").write_bytes(artifacts.pack(given, executable, SECRET))
    (tmp_path / "graph").write_bytes(ir.to_bytes(given.graph))
    torch.save({"weight": weight, "constants": dict(given.constants)}, tmp_path / "weights.pt")
    script = f"""
import sys, torch
from pathlib import Path
from tests.test_artifacts import run
from fairlead import artifacts, ir
from fairlead.hooks import CompileJob
from fairlead.registry import registry

torch.set_num_threads({torch.get_num_threads()})
name, folder = sys.argv[1], Path(sys.argv[2])
backend, saved = registry.ready(name), torch.load(folder / "weights.pt")
(graph,) = ir.from_bytes((folder / "graph").read_bytes()).graphs
job = CompileJob(backend, graph, backend.options_type(), saved["constants"])
executable = artifacts.unpack((folder / "artifact").read_bytes(), job, {SECRET!r})
torch.save(run(executable, saved["weight"]), folder / "out.pt")
"""
    root = Path(__file__).parents[1]
    done = forked.run(["-c", script, backend.name, str(tmp_path)], os.environ, folder=root)
    assert done.returncode == 0, done.stderr
    assert torch.equal(torch.load(tmp_path / "out.pt"), run(executable, weight))


def test_the_weights_are_those_of_the_job_and_can_be_renewed(backend: Backend[Any]) -> None:
    if not backend.capabilities.bakes_constants:
        pytest.skip("it is passed its weights")
    weight = torch.randn(3, 8)
    given = job(backend, weight)
    executable: Any = artifacts.unpack(packed(given), job(backend, weight), SECRET)
    x = torch.linspace(-1, 1, 40).reshape(5, 8)
    torch.testing.assert_close(run(executable, weight), torch.relu(x @ weight.t()))
    executable.refit({1: weight + 1})
    torch.testing.assert_close(run(executable, weight), torch.relu(x @ (weight + 1).t()))


def test_it_does_not_hold_the_weights(backend: Backend[Any]) -> None:
    wide = torch.randn(3, 8).mul(1e3)
    assert wide.numpy().tobytes()[:16] not in packed(job(backend, wide))


def test_another_sdk_is_refused(backend: Backend[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = job(backend)
    artifact, versions = packed(given), backend.probe().versions
    name = next(iter(versions))
    later = Probe(ok=True, versions={**versions, name: "99.1"})
    monkeypatch.setattr(type(backend), "probe", lambda self: later)
    with pytest.raises(ArtifactMismatchError, match=rf"another version {name}: .*, not 99\.1"):
        artifacts.unpack(artifact, given, SECRET)


def test_another_processor_is_refused(backend: Backend[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = job(backend)
    artifact = packed(given)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX9")
    with pytest.raises(ArtifactMismatchError, match=r"another machine processor: .*, not .* AVX9"):
        artifacts.unpack(artifact, given, SECRET)
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(ArtifactMismatchError, match=r"another machine architecture: .*, not \w+ vax"):
        artifacts.unpack(artifact, given, SECRET)


def test_another_number_of_threads_is_refused(backend: Backend[Any]) -> None:
    given = job(backend)
    artifact, threads = packed(given), torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.raises(ArtifactMismatchError, match=f"another number of threads: {threads}, not {threads + 1}"):
            artifacts.unpack(artifact, given, SECRET)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(("name", "option"), CHOICES)
def test_another_option_is_refused(name: str, option: dict[str, Any]) -> None:
    backend = registry.ready(name)
    with pytest.raises(ArtifactMismatchError, match="another choice of options"):
        artifacts.unpack(packed(job(backend)), job(backend, **option), SECRET)


def test_another_graph_is_refused(backend: Backend[Any]) -> None:
    given = job(backend)
    other = CompileJob(backend, graph("aten.tanh.default"), given.options, given.constants)
    with pytest.raises(ArtifactMismatchError, match="another graph"):
        artifacts.unpack(packed(given), other, SECRET)


def test_another_weight_is_refused(backend: Backend[Any]) -> None:
    if not backend.capabilities.bakes_constants:
        pytest.skip("it is passed its weights")
    given, weight = job(backend), torch.arange(24.0).sub(11).reshape(3, 8)
    artifact = packed(given)
    artifacts.unpack(artifact, job(backend, weight.t().contiguous().t()), SECRET)  # other strides, the same weight
    weight[2, 7] += 1e-5
    with pytest.raises(ArtifactMismatchError, match="another constant 1"):
        artifacts.unpack(artifact, job(backend, weight), SECRET)


def test_what_is_not_signed_reaches_no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = registry.ready("onnxrt")
    given = job(backend)
    artifact = packed(given)
    reached: list[bytes] = []
    monkeypatch.setattr(type(backend), "load", lambda self, data, *rest: reached.append(data))
    for at in range(0, len(artifact), 7):
        changed = bytearray(artifact)
        changed[at] ^= 1
        with pytest.raises(ArtifactFormatError):
            artifacts.unpack(bytes(changed), given, SECRET)
    for length in (0, 3, 7, 38, 39, len(artifact) - 1):
        with pytest.raises(ArtifactFormatError):
            artifacts.unpack(artifact[:length], given, SECRET)
    with pytest.raises(ArtifactFormatError, match="another secret"):
        artifacts.unpack(artifact, given, SECRET[::-1])
    assert reached == []
    artifacts.unpack(artifact, given, SECRET)
    assert len(reached) == 1


def test_a_secret_that_is_easy_to_guess_is_refused() -> None:
    given = job(registry.ready("eager"))
    with pytest.raises(ArgumentError, match="has 6 bytes, not 16 or more"):
        artifacts.pack(given, given.backend.compile(given.graph, given.options, {}), b"secret")


def test_what_a_backend_cannot_load_is_an_error_of_three_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = registry.ready("openvino")
    given = job(backend)
    monkeypatch.setattr(type(backend), "dump", lambda self, executable: b"of an earlier version")
    artifact = packed(given)
    with pytest.raises(ArtifactFormatError, match="backend 'openvino' cannot load it") as caught:
        artifacts.unpack(artifact, given, SECRET)
    assert len(str(caught.value).splitlines()) == 3


def test_a_backend_that_stores_nothing_says_so() -> None:
    class Forgetful:
        name, api_version = "forgetful", 1
        capabilities = registry.get("eager").capabilities
        options_type = registry.get("eager").options_type

    assert not isinstance(Forgetful(), Serializable)
    given = CompileJob(Forgetful(), graph(), Forgetful.options_type(), {})  # type: ignore[arg-type]  # only named
    with pytest.raises(ArtifactUnsupportedError, match="'forgetful' does not store executables"):
        artifacts.pack(given, lambda inputs: inputs, SECRET)  # type: ignore[arg-type]


def test_an_identity_names_what_it_is_of(backend: Backend[Any]) -> None:
    given = job(backend)
    identity = artifacts.verify(packed(given), SECRET)
    assert identity == artifacts.identify(given)
    assert identity.digest == artifacts.identify(job(backend)).digest
    assert {"torch", "fairlead"} <= identity.versions.keys()
    assert identity.graph == ir.fingerprint(given.graph)
