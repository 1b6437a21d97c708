"""What is recorded, as far as that can be told without a device: which nodes, and which calls."""

from __future__ import annotations

import logging

import pytest
import torch

from fairlead.backend import Backend
from fairlead.ir import Builder, DType, Node, TensorType, Token, Value
from fairlead_cudagraphs import CudaGraphsOptions, backend
from fairlead_cudagraphs._policy import Recordings
from fairlead_cudagraphs._recording import once, room_for

GPU = "cuda:0"


def value(id_: int, dtype: str = "f32", *shape: int, device: str = GPU) -> Value:
    return Value(id_, TensorType(DType(dtype), shape or (4,), device=device))


def node(op: str, *args: object, to: Value | None = None) -> Node:
    return Node(op, args, (to or value(9),))  # type: ignore[arg-type]


def test_it_is_a_backend() -> None:
    found: Backend[CudaGraphsOptions] = backend
    probe = found.probe()
    assert probe.ok is bool(torch.cuda.device_count())
    assert probe.ok or "finds no CUDA device" in probe.reason


X = value(0)


@pytest.mark.parametrize(
    ("declined", "reason"),
    [
        (node("aten.nonzero.default", X), "waits for a value"),
        (node("aten._linalg_svd.default", X, True, True, None), "waits for a value"),
        (node("aten.index.Tensor", X, (value(1, "bool"),)), "truth values"),
        (node("aten._to_copy.default", X, None, None, Token("device", "cpu")), "another device"),
        (node("aten._to_copy.default", X, to=value(9, device="cuda:1")), "another device"),
        (node("nn.scaled_dot_product_attention", X, X, X, None, 0.1, False, 1.0), "dropout"),
        (node("acme.op.default", X), "custom op"),
        (node("aten.searchsorted.Tensor", X, X), "waits for a value"),
        (node("aten.as_strided.default", X, (2,), (1,), 1), "where a storage begins"),
    ],
)
def test_what_waits_is_declined(declined: Node, reason: str) -> None:
    answer = backend.supports(declined)
    assert not answer.accepted
    assert reason in answer.reason


@pytest.mark.parametrize(
    "taken",
    [
        node("aten.relu.default", X),
        node("aten.index.Tensor", X, (value(1, "i64"),)),
        node("aten.native_dropout.default", X, 0.5, True),
        node("aten.linalg_vector_norm.default", X, 2, None, False, None),
        node("nn.scaled_dot_product_attention", X, X, X, None, 0.0, False, 1.0),
        node("aten.full.default", (4,), 1.0, None, None, Token("device", GPU), False),
    ],
)
def test_what_does_not_wait_is_taken(taken: Node) -> None:
    assert backend.supports(taken).accepted


@pytest.mark.parametrize("op", ["aten.mm.default", "aten.index.Tensor", "nn.scaled_dot_product_attention", "aten"])
def test_a_node_without_arguments_is_answered(op: str) -> None:
    assert backend.supports(node(op)).reason == "" or not backend.supports(node(op)).accepted


def test_a_graph_of_several_devices_is_refused() -> None:
    b = Builder("two")
    for device in (GPU, "cuda:1"):
        b.output(b.op("aten.relu.default", b.input(TensorType(DType.f32, (4,), device=device))))
    with pytest.raises(ValueError, match="of one device, and the graph is on cuda:0, cuda:1"):
        backend.compile(b.graph(), CudaGraphsOptions(), {})


def test_sizes_run_op_by_op_before_they_are_recorded() -> None:
    made = Recordings[int](most=2, warm_ups=2)
    assert [made.find("a", lambda: 1) for _ in range(4)] == [None, None, 1, 1]


def test_the_one_replayed_longest_ago_makes_room() -> None:
    made = Recordings[str](most=2, warm_ups=0)
    for key in ("a", "b", *"ab" * 8, "a"):
        made.find(key, lambda key=key: key)  # type: ignore[misc]
    assert made.find("c", lambda: "c") == "c"
    assert len(made) == 2
    assert made.find("a", lambda: "again") == "a"
    assert made.find("b", lambda: "again") == "again"


def test_sizes_that_never_come_back_are_no_longer_recorded(caplog: pytest.LogCaptureFixture) -> None:
    made = Recordings[int](most=2, warm_ups=0)
    with caplog.at_level(logging.WARNING, "fairlead.cudagraphs"):
        found = [made.find(size, lambda: 1) for size in range(50)]
    assert found == [1, 1] + [None] * 48
    assert len(caplog.records) == 1
    assert "raise the option recordings" in caplog.text


def test_no_recordings_are_made_where_none_are_allowed() -> None:
    made = Recordings[int](most=0, warm_ups=0)
    assert [made.find("a", lambda: 1) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((2, 3), (3, 1), (3, 1)),
        ((2, 3), (1, 2), (1, 2)),
        ((2, 3), (8, 2), (8, 2)),
        ((2, 3), (0, 1), (0, 1)),
        ((3, 3), (1, 1), (3, 1)),
        ((1, 3), (0, 1), (0, 1)),
    ],
)
def test_a_buffer_has_the_strides_that_were_captured_unless_windows_overlap(
    shape: tuple[int, ...], strides: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert room_for(shape, strides, torch.ones(1), torch.device("cpu")).stride() == expected


@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (0, 0), (3, 1)])
def test_what_is_expanded_is_copied_once(strides: tuple[int, int]) -> None:
    given = torch.arange(6.0).as_strided((2, 3), strides)
    buffer = room_for(given.shape, strides, given, torch.device("cpu"))
    once(buffer, buffer.stride()).copy_(once(given, buffer.stride()))
    assert buffer.stride() == strides
    assert torch.equal(buffer, given)
