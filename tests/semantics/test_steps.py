"""Whole training steps as one graph: what eager training does, in the caller's own objects."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from transformers import LlamaConfig, LlamaForCausalLM

import fairlead
from fairlead.backend import Capabilities, NoOptions, Probe, Support
from fairlead.errors import FallbackBudgetError
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Node
from fairlead.registry import registry

from .twins import Convolutions, Twins, adamw, classified, sgd, squared

Batch = tuple[torch.Tensor, ...]


def llama() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
            max_position_embeddings=16, bos_token_id=None, eos_token_id=None, use_cache=False,
        )
    )  # fmt: skip


def language_loss(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    return model(input_ids=ids, labels=ids).loss


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((model, name) for model in ("convolutions", "llama") for name in ("eager", "onnxrt", "openxla")),
        ("convolutions", "inductor"),  # which benchmarks/one_step.py compares on a Llama: compiling takes it long
    ],
)
def test_twenty_steps_follow_eagers_loss_curve_in_one_graph(name: str, model: str) -> None:
    if model == "llama":
        twins = Twins(llama(), sgd, language_loss, backend=name, fallback="eager")
        batches: list[Batch] = [(torch.randint(0, 32, (2, 8)),) for _ in range(3)]
    else:
        twins = Twins(Convolutions(), sgd, classified, backend=name, fallback="eager")
        batches = [(torch.randn(4, 1, 10, 10), torch.randint(0, 3, (4,))) for _ in range(3)]
    curves = [twins.both(*batches[step % 3]) for step in range(20)]
    assert [mine for mine, _ in curves] == pytest.approx([eagers for _, eagers in curves], rel=1e-3)
    assert curves[-1][0] < curves[0][0]
    assert twins.compiled == 1
    assert twins.step.fairlead.recompilations == ()
    if model == "llama":
        (graph,) = twins.step.fairlead.placement.graphs
        assert (graph.name, len(graph.parts), graph.parts[0].backend) == ("step_0", 1, name)


class Counted:
    """A backend that runs everything in torch, and counts what it compiles and runs."""

    name = "counted"
    api_version = 1
    options_type = NoOptions

    def __init__(self, *, training_steps: bool) -> None:
        self.capabilities = Capabilities(
            devices=("cpu",), dtypes=tuple(DType), training=True, rng=True, training_steps=training_steps
        )
        self.compiled, self.runs = 0, 0

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Any, /) -> Any:
        self.compiled += 1
        return _Run(self, to_fx(graph).forward)


class _Run:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, backend: Counted, function: Callable[..., Any]) -> None:
        self._backend, self._function = backend, function

    def __call__(self, inputs: Any, /) -> Any:
        self._backend.runs += 1
        return self._function(*inputs)


@pytest.fixture
def counted() -> Iterator[Callable[..., Counted]]:
    made: list[Counted] = []

    def make(**given: Any) -> Counted:
        made.append(Counted(**given))
        registry.register(made[-1], replace=True)
        return made[-1]

    yield make
    registry.unregister("counted")


def test_each_step_calls_one_executable_which_was_compiled_once(counted: Callable[..., Counted]) -> None:
    backend = counted(training_steps=True)
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared, backend="counted", max_fallback=0)
    for step in range(1, 5):
        twins.both(torch.randn(3, 8))
        assert (backend.compiled, backend.runs) == (1, step)
    twins.compare()


def test_a_backend_that_does_not_declare_whole_steps_leaves_them_to_the_cascade(
    counted: Callable[..., Counted],
) -> None:
    backend = counted(training_steps=False)
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared, backend="counted", fallback="eager")
    twins.both(torch.randn(3, 8))
    twins.compare()
    declined = {d.reason for d in twins.step.fairlead.placement.declines}
    assert (backend.runs, declined) == (0, {"no whole training steps"})
    with pytest.raises(FallbackBudgetError, match="no whole training steps"):
        Twins(torch.nn.Linear(8, 3), adamw, squared, backend="counted", max_fallback=0).both(torch.randn(3, 8))


def test_what_else_a_loss_function_returns_is_returned_without_gradients() -> None:
    def loss(model: torch.nn.Module, x: torch.Tensor) -> Any:
        y = model(x)
        return y.square().mean(), {"out": y, "rows": x.shape[0]}

    model = torch.nn.Linear(8, 3)
    expected, x = copy.deepcopy(model), torch.randn(3, 8)
    step = fairlead.compile_step(model, adamw(model.parameters()), loss, backend="eager")
    found, rest = step(x)
    assert (found.shape, rest["rows"], rest["out"].requires_grad) == ((), 3, False)
    torch.testing.assert_close(rest["out"], expected(x).detach())


def test_disabled_a_step_runs_in_eager_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_DISABLE", "1")
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    twins.both(torch.randn(3, 8))
    twins.compare()
    assert twins.compiled == 0


def test_nothing_is_logged_and_gradients_of_before_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    squared(twins.model, torch.ones(3, 8)).backward()
    with caplog.at_level(logging.WARNING), torch.no_grad():
        twins.step(torch.zeros(3, 8))
    assert caplog.messages == []
    assert all(p.grad is None for p in twins.model.parameters())
