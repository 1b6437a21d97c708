"""LSTMs in inference on a CPU: one graph, one op a layer and direction, and eager's numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils._pytree import tree_leaves

import fairlead
from fairlead import numpy as interpreter
from fairlead.hooks import hookimpl, plugin_manager
from fairlead.interpret import run
from fairlead.ir import Builder, Graph


class Listener:
    def __init__(self) -> None:
        self.layers: list[int] = []

    @hookimpl
    def fairlead_captured(self, graph: Graph) -> None:
        self.layers.append(sum(node.op == "nn.lstm" for node in graph.nodes))


@pytest.fixture
def layers() -> Iterator[list[int]]:
    """How many layers each captured graph has."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    listener = Listener()
    plugin_manager().register(listener, "test-recurrent")
    yield listener.layers
    plugin_manager().unregister(name="test-recurrent")


def close(found: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    for a, b in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        torch.testing.assert_close(a.double(), b.detach().double(), rtol=0, atol=tolerance)


FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batches first": {"batch_first": True},
    "both directions": {"bidirectional": True},
    "no biases": {"bias": False},
    "two layers with dropout": {"num_layers": 2, "dropout": 0.5},
    "all of it": {"num_layers": 2, "bidirectional": True, "batch_first": True},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("form", FORMS)
def test_an_lstm_is_one_graph_with_an_op_a_layer_and_direction(
    form: str, dtype: torch.dtype, layers: list[int]
) -> None:
    lstm = nn.LSTM(8, 16, **FORMS[form]).eval().to(dtype)
    wide = copy.deepcopy(lstm).double()
    count = lstm.num_layers * (2 if lstm.bidirectional else 1)
    compiled = fairlead.compile(lstm, backend="eager", fullgraph=True)
    x = torch.randn(3, 5, 8, dtype=dtype).transpose(0, 1)
    states = tuple(torch.randn(count, 5 if lstm.batch_first else 3, 16, dtype=dtype) for _ in range(2))
    tolerance = 1e-6 if dtype is torch.float32 else 2e-2
    with torch.no_grad():
        close(compiled(x), wide(x.double()), tolerance)
        close(compiled(x, states), wide(x.double(), tuple(s.double() for s in states)), tolerance)
    assert layers == [count, count]


def test_an_lstm_takes_sequences_of_any_length(layers: list[int]) -> None:
    lstm = nn.LSTM(8, 16)
    compiled = fairlead.compile(lstm, backend="eager", fullgraph=True, dynamic=True)
    with torch.no_grad():
        for length in (5, 2, 300, 1):
            x = torch.randn(length, 3, 8)
            close(compiled(x), lstm(x))
    assert layers == [1, 1]  # one step is a graph of its own


def test_training_between_calls_without_gradients_has_eagers_gradients(layers: list[int]) -> None:
    lstm, x = nn.LSTM(8, 16, 2), torch.randn(5, 3, 8)
    compiled = fairlead.compile(lstm, backend="eager")
    with torch.no_grad():
        close(compiled(x), lstm(x))
    compiled(x)[0].square().sum().backward()
    found = [p.grad for p in lstm.parameters()]
    lstm.zero_grad()
    lstm(x)[0].square().sum().backward()
    close(found, [p.grad for p in lstm.parameters()])
    with torch.no_grad():
        close(compiled(x), lstm(x))
    assert layers == [2]


def test_a_call_that_needs_gradients_is_eagers_beside_one_that_does_not(layers: list[int]) -> None:
    lstm, x = nn.LSTM(8, 16), torch.randn(5, 3, 8)

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            first, _ = lstm(x)
        return first, lstm(x)[0]

    first, second = fairlead.compile(both, backend="eager")(x)
    close((first, second), both(x))
    assert second.requires_grad
    assert layers == [1]


def test_an_input_that_requires_a_gradient_is_left_to_eager(layers: list[int]) -> None:
    lstm, x = nn.LSTM(8, 16), torch.randn(5, 3, 8, requires_grad=True)
    with torch.no_grad():
        close(fairlead.compile(lstm, backend="eager")(x), lstm(x))
    assert layers == []


def test_dropout_between_layers_is_left_to_eager(layers: list[int]) -> None:
    lstm, x = nn.LSTM(8, 16, 3, dropout=0.5).train(), torch.randn(5, 3, 8)
    compiled = fairlead.compile(lstm, backend="eager")
    with torch.no_grad():
        torch.manual_seed(1)
        found = compiled(x)
        torch.manual_seed(1)
        close(found, lstm(x))
    assert layers == []


def test_packed_sequences_are_left_to_eager(layers: list[int]) -> None:
    lstm, x, lengths = nn.LSTM(8, 16, batch_first=True), torch.randn(3, 6, 8), torch.tensor([6, 2, 4])

    def packed(x: Tensor, lengths: Tensor) -> Tensor:
        out, _ = lstm(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        return pad_packed_sequence(out, batch_first=True)[0] * 2

    with torch.no_grad():
        close(fairlead.compile(packed, backend="eager")(x, lengths), packed(x, lengths))
    assert sum(layers) == 0


@pytest.mark.parametrize("module", [nn.GRU(8, 16), nn.RNN(8, 16), nn.LSTM(8, 16, proj_size=4), nn.LSTM(8, 16).double()])
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_other_recurrent_layers_are_left_to_eager(module: nn.Module, layers: list[int]) -> None:
    x = torch.randn(5, 3, 8, dtype=next(module.parameters()).dtype)
    with torch.no_grad():
        close(fairlead.compile(module, backend="eager")(x), module(x))
    assert layers == []


def test_other_programs_of_the_process_are_as_they_were(layers: list[int]) -> None:
    lstm, x = nn.LSTM(8, 16), torch.randn(5, 3, 8)
    with torch.no_grad():
        fairlead.compile(lstm, backend="eager")(x)
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(lstm, backend="eager", fullgraph=True)(x)
    assert layers == [1]


def test_what_the_user_lets_dynamo_trace_is_right_whatever_its_layout(layers: list[int]) -> None:
    lstm, x = nn.LSTM(8, 16, 2, batch_first=True), torch.randn(5, 3, 8)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        close(fairlead.compile(lstm, backend="eager", fullgraph=True)(x), lstm(x))
    assert layers == [2]


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 24)
        self.lstm = nn.LSTM(24, 32, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        self.tags = nn.Linear(64, 7)

    def forward(self, words: Tensor) -> Tensor:
        out: Tensor = self.tags(self.lstm(self.words(words))[0])
        return out


def test_a_tagger_is_one_graph_and_as_near_to_float64_as_eager(layers: list[int]) -> None:
    tagger, words = Tagger().eval(), torch.randint(0, 100, (4, 20))
    with torch.no_grad():
        found = fairlead.compile(tagger, backend="eager", fullgraph=True)(words)
        close(found, copy.deepcopy(tagger).double()(words))
    assert layers == [4]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("has_biases", [False, True])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_a_layer_is_torchs_in_both_interpreters(kind: str, has_biases: bool, reverse: bool) -> None:
    torch.manual_seed(0)
    biases = [[16], [16]] if has_biases else []
    shapes = [[5, 2, 3], [1, 2, 4], [1, 2, 4], [16, 3], [16, 4], *biases]
    b = Builder()
    operands = [b.input(f"{kind}{shape}") for shape in shapes]
    for out in b.ops("nn.lstm", *operands, *[None] * (7 - len(shapes)), reverse):
        b.output(out)
    data, *others = (torch.randn(shape, dtype=torch.float32 if kind == "f32" else torch.float64) for shape in shapes)
    data = data.transpose(0, 1).contiguous().transpose(0, 1)
    layer = nn.LSTM(3, 4, bias=has_biases).double()
    for weight, given in zip(layer.parameters(), others[2:], strict=True):
        weight.data = given.double()
    out, states = layer(data.double().flip(0) if reverse else data.double(), tuple(s.double() for s in others[:2]))
    wanted = (out.flip(0) if reverse else out, *states)
    tolerance = 1e-6 if kind == "f32" else 1e-12
    close(run(b.graph(), [data, *others]), wanted, tolerance)
    found = interpreter.run(b.graph(), [x.numpy() for x in (data, *others)])
    close([torch.from_numpy(x) for x in found], wanted, tolerance)
