"""How an engine is called, against a stand-in of the SDK on the CPU: which sizes build, what is kept, whose memory.

The stand-in does what NVIDIA's documentation says of each call, for an engine that adds a weight, and refuses what that
forbids.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, Symbol, TensorType, Value
from fairlead_tensorrt import TensorRTOptions, _executable
from fairlead_tensorrt._executable import EngineExecutable
from fairlead_tensorrt._sdk import Built, Range

X, W, OUT = (Value(i, TensorType(DType.f32, s)) for i, s in enumerate((("s", 2), (1,), ("s", 2))))
GRAPH = Graph(
    "add",
    Kind.inference,
    (Input(X), Input(W, Role.parameter)),
    (Node("aten.add.Tensor", (X, W, 1), (OUT,)),),
    (Output(OUT),),
    (Symbol("s", 1, None, (0, 0)),),
)


class Context:
    """An execution context: computes ``out0 = in0 + weight`` in f32, from and to the addresses that it was given."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.addresses: dict[str, int] = {}
        self.shape: tuple[int, ...] | None = None
        self.streams: list[int] = []

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        low, high = self.engine.ranges[name].smallest, self.engine.ranges[name].largest
        self.shape = shape
        return all(a <= n <= b for a, n, b in zip(low, shape, high, strict=True))

    def set_tensor_address(self, name: str, address: int) -> bool:
        assert address, "TensorRT refuses null"
        self.addresses[name] = address
        return True

    def execute_async_v3(self, stream: int) -> bool:
        assert self.shape is not None
        count = math.prod(self.shape)
        read, written = ((ctypes.c_float * count).from_address(self.addresses[n]) for n in ("in0", "out0"))
        for i in range(count):
            written[i] = read[i] + self.engine.weight
        self.streams.append(stream)
        return True


class Engine:
    """What `fairlead_tensorrt._sdk.Loaded` is to the executable."""

    def __init__(self, sdk: StandIn, ranges: dict[str, Range]) -> None:
        self.sdk = sdk
        self.ranges = ranges
        self.contexts: list[Context] = []
        self.is_refittable = sdk.refits
        self.weight = sdk.weight

    def context(self) -> Context:
        self.contexts.append(Context(self))
        return self.contexts[-1]

    def refit(self, weights: dict[str, Any]) -> bool:
        self.weight = float(weights["in1"].item())
        self.sdk.refitted += 1
        return True

    def in_host_memory(self, name: str) -> bool:
        return False

    def without_weights(self) -> bytes:
        return b"plan"

    def cache(self) -> bytes:
        return b"kernels"


class StandIn:
    """What `fairlead_tensorrt._sdk.Sdk` is to the executable: counts what is built."""

    refits_rightly = True

    def __init__(self, refits: bool = True) -> None:
        self.refits = refits
        self.built: list[dict[str, Range]] = []
        self.engines: list[Engine] = []
        self.refitted = 0
        self.weight = 0.0
        self.stream = 7

    def build(self, model: bytes, weights: dict[str, Any], ranges: dict[str, Range], how: Any) -> Built:
        self.weight = float(weights["in1"].item())
        self.built.append(dict(ranges))
        return Built(b"plan", (), frozenset(weights), how.timing + b"t")

    def load(self, plan: bytes, cache: bytes) -> Engine:
        self.engines.append(Engine(self, self.built[-1]))
        return self.engines[-1]


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The stand-in, with its stream in the place of CUDA's."""
    found = StandIn()
    monkeypatch.setattr(_executable, "sdk_of", lambda flavour: found)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=found.stream))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    return found


def executable(weight: float = 1.0) -> Any:
    return EngineExecutable(GRAPH, TensorRTOptions(), {1: torch.tensor([weight])})


def test_results_are_of_this_call_alone_whatever_the_strides(sdk: StandIn) -> None:
    run = executable()
    x = torch.arange(6.0).reshape(2, 3).t()
    (first,), (second,) = run([x]), run([x * 2])
    torch.testing.assert_close(first, x + 1)
    torch.testing.assert_close(second, x * 2 + 1)


def test_an_engine_is_built_for_the_first_sizes_and_again_beyond_its_range(sdk: StandIn) -> None:
    run = executable()
    assert sdk.built == []
    for rows in (3, 8, 2, 1):
        run([torch.zeros(rows, 2)])
    assert [r["in0"].largest for r in sdk.built] == [(8, 2)]
    run([torch.zeros(9, 2)])
    run([torch.zeros(3, 2)])
    assert [r["in0"].largest for r in sdk.built] == [(8, 2), (32, 2)]


def test_an_empty_tensor_is_read_from_somewhere(sdk: StandIn) -> None:
    assert executable()([torch.zeros(0, 2)])[0].shape == (0, 2)


def test_a_context_stays_on_its_stream(sdk: StandIn) -> None:
    run = executable()
    for stream in (7, 8, 7, 8, 7):
        sdk.stream = stream
        run([torch.zeros(2, 2)])
    assert [c.streams for c in sdk.engines[0].contexts] == [[7, 7, 7], [8, 8]]


def test_new_weights_are_refitted_and_nothing_is_built(sdk: StandIn) -> None:
    run = executable()
    run([torch.zeros(2, 2)])
    run.refit({1: torch.tensor([5.0])})
    assert run([torch.zeros(2, 2)])[0].tolist() == [[5.0, 5.0]] * 2
    assert (len(sdk.built), sdk.refitted) == (1, 1)


def test_new_weights_build_again_where_the_engine_does_not_take_them(sdk: StandIn) -> None:
    sdk.refits = False
    run = executable()
    run([torch.zeros(2, 2)])
    run.refit({1: torch.tensor([5.0])})
    assert run([torch.zeros(2, 2)])[0].tolist() == [[5.0, 5.0]] * 2
    assert (len(sdk.built), sdk.refitted) == (2, 0)


def test_what_is_stored_has_the_engine_only_where_it_can_be_refitted(sdk: StandIn) -> None:
    run = executable()
    assert run.stored().plan == b""
    run([torch.zeros(2, 2)])
    stored = run.stored()
    assert (stored.plan, stored.compiled, stored.timing) == (b"plan", b"kernels", b"t")
    again = EngineExecutable(GRAPH, TensorRTOptions(), {1: torch.tensor([3.0])}, stored)
    assert again([torch.zeros(1, 2)])[0].tolist() == [[3.0, 3.0]]
    assert (len(sdk.built), sdk.refitted) == (1, 1)
