"""What is stored of XLA's programs: all that was compiled, with its layouts and checks, for the same environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import torch

from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Symbol, TensorType, Value
from fairlead_openxla import OpenXLAOptions, backend

OPTIONS = OpenXLAOptions(executables=2)


def tensor(id_: int, *shape: int | str, dtype: DType = DType.f32) -> Value:
    return Value(id_, TensorType(dtype, shape))


def graph(inputs: Sequence[Value], node: Node, symbols: Sequence[Symbol] = ()) -> Graph:
    outputs = tuple(Output(v) for v in node.results if v is not None)
    return Graph("g", Kind.inference, tuple(map(Input, inputs)), (node,), outputs, tuple(symbols))


def of_two_sizes(*order: str) -> Graph:
    x, out = tensor(0, "a", "b"), tensor(1, "a", "b")
    symbols = {"a": Symbol("a", 1, None, (0, 0)), "b": Symbol("b", 1, None, (0, 1))}
    return graph([x], Node("aten.neg.default", (x,), (out,)), [symbols[name] for name in order])


def stored(g: Graph, *calls: list[torch.Tensor]) -> bytes:
    executable = backend.compile(g, OPTIONS, {})
    for inputs in calls:
        executable(inputs)
    return backend.dump(executable)


def test_every_set_of_sizes_is_stored_and_no_more_is_compiled_for_it() -> None:
    g = of_two_sizes("a", "b")
    loaded = backend.load(stored(g, [torch.ones(2, 3)], [torch.ones(3, 2)]), g, OPTIONS, {})
    for x in (torch.randn(3, 2), torch.randn(2, 3)):
        assert torch.equal(loaded([x])[0], -x)
    with pytest.raises(RuntimeError, match="compiled for 2 sets"):
        loaded([torch.ones(4, 4)])


def test_what_was_not_compiled_when_it_was_stored_is_compiled_later() -> None:
    g, x = of_two_sizes("a", "b"), torch.randn(5, 2)
    assert torch.equal(backend.load(stored(g), g, OPTIONS, {})([x])[0], -x)


def test_sizes_in_another_order_are_refused() -> None:
    with pytest.raises(ValueError, match="take their sizes from"):
        backend.load(stored(of_two_sizes("a", "b")), of_two_sizes("b", "a"), OPTIONS, {})


def test_other_flags_of_xla_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    g = of_two_sizes("a", "b")
    data = stored(g)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(ValueError, match="compiled with XLA_FLAGS=''"):
        backend.load(data, g, OPTIONS, {})


def test_an_index_out_of_range_is_an_error_of_a_loaded_program_too() -> None:
    weight, at, out = tensor(0, 4, 2), tensor(1, 3, dtype=DType.i64), tensor(2, 3, 2)
    g = graph([weight, at], Node("aten.embedding.default", (weight, at, -1, False, False), (out,)))
    loaded, rows = backend.load(stored(g), g, OPTIONS, {}), torch.randn(4, 2)
    assert torch.equal(loaded([rows, torch.tensor([3, 0, 1])])[0], rows[[3, 0, 1]])
    with pytest.raises(IndexError, match=r"out of range for 4 elements in aten\.embedding"):
        loaded([rows, torch.tensor([0, 4, 1])])


def test_a_loaded_convolution_lays_its_weight_out_as_it_was_compiled() -> None:
    x, w, y = tensor(0, 1, 3, 6, 6), tensor(1, 4, 3, 3, 3), tensor(2, 1, 4, 6, 6)
    settings: tuple[Any, ...] = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    g = graph([x, w], Node("aten.convolution.default", (x, w, None, *settings), (y,)))
    weight, given = torch.randn(4, 3, 3, 3), torch.randn(1, 3, 6, 6)
    executable = backend.compile(g, OPTIONS, {1: weight})
    loaded = backend.load(backend.dump(executable), g, OPTIONS, {1: weight})
    assert torch.equal(loaded([given])[0], executable([given])[0])
    loaded.refit({1: -weight})
    assert torch.equal(loaded([given])[0], -executable([given])[0])


@pytest.mark.parametrize("kept", [0, 0.5, 0.99])
def test_what_is_cut_off_is_not_loaded(kept: float) -> None:
    g = of_two_sizes("a", "b")
    data = stored(g, [torch.ones(2, 3)])
    with pytest.raises(msgspec.DecodeError):
        backend.load(data[: int(kept * len(data))], g, OPTIONS, {})
