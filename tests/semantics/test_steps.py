"""Whole training steps as one graph: what eager training does, in the caller's own objects."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

import fairlead
from fairlead.backend import Capabilities, NoOptions, Probe, Support
from fairlead.errors import ArgumentError, FallbackBudgetError, StepError
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Node
from fairlead.registry import registry

from .nets import Attention, Mlp

Batch = tuple[torch.Tensor, ...]
Make = Callable[[Any], torch.optim.Optimizer]

adamw = functools.partial(torch.optim.AdamW, lr=1e-2)
sgd = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01)


class Convolutions(torch.nn.Module):
    """Two convolutions with a batch norm between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(1, 4, 3, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.second = torch.nn.Conv2d(4, 4, 3, stride=2)
        self.out = torch.nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.norm(self.first(x)).relu())
        return self.out(functional.adaptive_avg_pool2d(x, 2).flatten(1))


def llama() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
            max_position_embeddings=16, bos_token_id=None, eos_token_id=None, use_cache=False,
        )
    )  # fmt: skip


def language_loss(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    return model(input_ids=ids, labels=ids).loss


def classified(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(x), y)


def squared(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).square().mean()


class Twins:
    """A model that a compiled step trains, and its copy that eager mode trains."""

    def __init__(self, model: torch.nn.Module, make: Make, loss: Callable[..., Any], **given: Any) -> None:
        self.model, self.reference, self.loss = model, copy.deepcopy(model), loss
        self.optimizer, self.eager = make(model.parameters()), make(self.reference.parameters())
        self.step = fairlead.compile_step(model, self.optimizer, loss, **{"backend": "eager", **given})

    def both(self, *batch: torch.Tensor) -> tuple[float, float]:
        """A step of each; what they give for the loss."""
        found = self.step(*batch)
        assert not found.requires_grad
        self.eager.zero_grad()
        wanted = self.loss(self.reference, *batch)
        wanted.backward()
        self.eager.step()
        return found.item(), wanted.item()

    def compare(self, rtol: float = 1e-4, atol: float = 1e-5) -> None:
        """Parameters, buffers and the state of the optimizers are equal."""
        torch.testing.assert_close(self.model.state_dict(), self.reference.state_dict(), rtol=rtol, atol=atol)
        mine, eagers = self.optimizer.state_dict()["state"], self.eager.state_dict()["state"]
        torch.testing.assert_close(mine, eagers, rtol=rtol, atol=atol)
        assert all(p.grad is None for p in self.model.parameters())

    @property
    def compiled(self) -> int:
        return len(self.step.fairlead.placement.graphs)


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


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(torch.optim.Adam, lr=1e-2, weight_decay=0.1, amsgrad=True),
        functools.partial(torch.optim.AdamW, lr=1e-2, foreach=True, maximize=True),
        functools.partial(torch.optim.AdamW, lr=1e-2, fused=True),
        functools.partial(torch.optim.SGD, lr=1e-2, momentum=0.9, nesterov=True),
        functools.partial(torch.optim.RMSprop, lr=1e-2, momentum=0.5),
        functools.partial(torch.optim.NAdam, lr=1e-2),
        lambda parameters: torch.optim.AdamW([{"params": [p], "lr": 0.1 / p.dim()} for p in parameters]),
    ],
    ids=["amsgrad", "foreach", "fused", "nesterov", "rmsprop", "nadam", "groups"],
)
def test_optimizers_step_as_they_do_in_eager_mode(make: Make) -> None:
    twins = Twins(torch.nn.Linear(8, 3), make, squared)
    before = [dict(group) for group in twins.optimizer.param_groups]
    for _ in range(3):
        twins.both(torch.randn(4, 8))
        twins.compare()
    assert [dict(group) for group in twins.optimizer.param_groups] == before
    assert twins.compiled == 1


def test_dampened_momentum_has_a_first_step_of_its_own() -> None:
    twins = Twins(torch.nn.Linear(8, 3), functools.partial(torch.optim.SGD, momentum=0.9, dampening=0.5), squared)
    for _ in range(4):
        twins.both(torch.randn(4, 8))
    twins.compare()
    assert twins.compiled == 2


def test_a_learning_rate_that_changes_compiles_nothing_and_is_never_stale() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (twins.optimizer, twins.eager)]
    for _ in range(4):
        twins.both(torch.randn(3, 8))
        for schedule in schedules:
            schedule.step()
        twins.compare()
    assert twins.optimizer.param_groups[0]["lr"] == 1e-2 / 16
    assert twins.compiled == 1


@pytest.mark.parametrize("make", [adamw, sgd])
def test_a_momentum_that_cycles_compiles_once_more(make: Make) -> None:
    twins = Twins(torch.nn.Linear(8, 3), make, squared)
    cycle = functools.partial(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.05, total_steps=12)
    schedules = [cycle(optimizer) for optimizer in (twins.optimizer, twins.eager)]
    for _ in range(5):
        twins.both(torch.randn(4, 8))
        for schedule in schedules:
            schedule.step()
        twins.compare()
    assert [graph.name for graph in twins.step.fairlead.placement.graphs] == ["step_0", "step_1"]


def test_sizes_that_change_are_symbols_with_dropout_and_its_numbers() -> None:
    twins = Twins(Attention(), adamw, squared, rng="eager", verify="first")
    for size in (4, 5, 7):
        ids = torch.randint(0, 16, (2, size))
        torch.manual_seed(size)
        found = twins.step(ids).item()
        after = torch.get_rng_state()
        torch.manual_seed(size)
        twins.eager.zero_grad()
        wanted = squared(twins.reference, ids)
        wanted.backward()
        twins.eager.step()
        assert found == pytest.approx(wanted.item(), rel=1e-4)
        assert torch.equal(after, torch.get_rng_state())
    assert twins.compiled == 2


def test_another_hyperparameter_is_another_program() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    for decay in (0.01, 0.5):
        for optimizer in (twins.optimizer, twins.eager):
            optimizer.param_groups[0]["weight_decay"] = decay
        twins.both(torch.randn(3, 8))
        twins.compare()
    assert twins.compiled > 1


@pytest.mark.parametrize("by", ["norm", "value", "hand"])
def test_gradients_are_clipped_before_the_update(by: str) -> None:
    if by != "hand" and torch.__version__ < "2.13":
        pytest.skip("clip_grad_norm_ and clip_grad_value_ break the graphs of older releases of torch")

    def clip(model: torch.nn.Module) -> None:
        if by == "norm":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        elif by == "value":
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
        else:
            for p in model.parameters():
                p.grad.mul_((0.1 / p.grad.norm()).clamp(max=1.0))

    model, x = torch.nn.Linear(8, 3), torch.randn(4, 8) * 9
    reference = copy.deepcopy(model)
    optimizer, eager = (torch.optim.SGD(m.parameters(), lr=0.5) for m in (model, reference))
    step = fairlead.compile_step(model, optimizer, squared, before_update=lambda: clip(model), backend="eager")
    for _ in range(2):
        step(x)
        eager.zero_grad()
        squared(reference, x).backward()
        clip(reference)
        eager.step()
    torch.testing.assert_close(model.state_dict(), reference.state_dict())
    (graph,) = step.fairlead.placement.graphs
    assert not [node.op for node in graph.nodes if "_foreach_" in node.op]


class Branches(torch.nn.Module):
    """Weights that are tied, frozen, not used, and used by some calls alone."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(8, 4)
        self.out = torch.nn.Linear(4, 8, bias=False)
        self.out.weight = self.table.weight
        self.frozen = torch.nn.Linear(4, 4).requires_grad_(False)
        self.unused = torch.nn.Linear(4, 4)
        self.sometimes = torch.nn.Linear(4, 4)
        self.takes_sometimes = False

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.frozen(self.table(ids))
        return self.out(self.sometimes(x) if self.takes_sometimes else x)


def test_tied_frozen_and_unused_weights_are_what_they_are_in_eager_mode() -> None:
    twins = Twins(Branches(), adamw, squared)
    ids = torch.randint(0, 8, (5,))
    for takes in (False, False, True, False, True, False):
        twins.model.takes_sometimes = twins.reference.takes_sometimes = takes
        twins.both(ids)
        twins.compare()
    assert twins.compiled == 2
    state = twins.optimizer.state
    assert twins.model.unused.weight not in state
    assert twins.model.frozen.weight not in state
    twins.model.frozen.requires_grad_(True)
    twins.reference.frozen.requires_grad_(True)
    twins.both(ids)
    twins.compare()


def test_batch_statistics_modes_and_batch_sizes() -> None:
    twins = Twins(Convolutions(), adamw, classified)
    for size, trains in ((4, True), (4, False), (6, True), (7, True)):
        twins.model.train(trains)
        twins.reference.train(trains)
        twins.both(torch.randn(size, 1, 10, 10), torch.randint(0, 3, (size,)))
        twins.compare()
    assert twins.model.norm.num_batches_tracked == 3


def test_dropout_drops_anew_at_each_step_as_eager_does() -> None:
    twins = Twins(Attention(), adamw, lambda model, ids: model(ids).square().mean())
    twins.model.dropout.p = twins.reference.dropout.p = 0.5
    ids = torch.randint(0, 16, (2, 6))
    found = []
    for seed in (1, 2):
        before = copy.deepcopy(twins.model.state_dict())
        torch.manual_seed(seed)
        found.append(twins.step(ids).item())
        torch.manual_seed(seed)
        twins.model.load_state_dict(before)
        assert squared(twins.model, ids).item() == pytest.approx(found[-1])
        torch.manual_seed(seed)
        twins.model.load_state_dict(before)
        twins.step(ids)
    assert found[0] != found[1]
    assert twins.compiled == 1


def test_eager_training_loading_and_steps_take_turns() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    saved: list[Any] = []
    for _ in range(2):
        twins.both(torch.randn(3, 8))
        for model, optimizer in ((twins.model, twins.optimizer), (twins.reference, twins.eager)):
            optimizer.zero_grad()
            squared(model, torch.ones(3, 8)).backward()
            optimizer.step()
        twins.model.zero_grad()
        twins.compare()
        saved.append(copy.deepcopy((twins.model.state_dict(), twins.optimizer.state_dict())))
    for model, optimizer in ((twins.model, twins.optimizer), (twins.reference, twins.eager)):
        model.load_state_dict(saved[0][0])
        optimizer.load_state_dict(copy.deepcopy(saved[0][1]))
    twins.both(torch.randn(3, 8))
    twins.compare()
    assert twins.compiled == 1


def test_a_weight_that_is_exchanged_gets_no_gradient_as_in_eager_mode() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    twins.both(torch.randn(4, 8))
    with torch.no_grad():
        new = torch.randn(3, 8)
    old = twins.model.weight
    for model in (twins.model, twins.reference):
        model.weight = torch.nn.Parameter(new.clone())
    before = old.detach().clone()
    twins.both(torch.randn(4, 8))
    twins.compare()
    assert torch.equal(old, before)


def test_a_step_under_autocast_leaves_float32_weights_and_state() -> None:
    def autocast_loss(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().square().mean()

    inside = Twins(Mlp(), sgd, autocast_loss)
    around = Twins(copy.deepcopy(inside.model), sgd, squared)
    for _ in range(2):
        x = torch.randn(3, 8)
        inside.both(x)
        with torch.autocast("cpu", torch.bfloat16):
            found = around.step(x)
        assert found.dtype == torch.bfloat16
    inside.compare(rtol=1e-2, atol=1e-3)
    assert all(p.dtype == torch.float32 for p in around.model.parameters())
    for mine, theirs in zip(around.model.parameters(), inside.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=5e-2, atol=5e-3)


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


class Tripled(torch.autograd.Function):
    """A square whose gradient is three times its operand."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * gradient * x


def _checkpointed(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.utils.checkpoint.checkpoint(lambda t: model(t).relu(), x, use_reentrant=False).square().mean()


def _with_a_gradient_of_its_own(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return Tripled.apply(model(x)).mean()


def _with_a_hook(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = model(x)
    y.register_hook(lambda gradient: gradient * 2)
    return y.square().mean()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by Dynamo
@pytest.mark.parametrize("loss", [_checkpointed, _with_a_gradient_of_its_own, _with_a_hook])
def test_what_changes_a_backward_changes_that_of_a_step(loss: Callable[..., Any]) -> None:
    if loss is _with_a_hook and torch.__version__ < "2.13":
        pytest.skip("hooks of what a program computes break the graphs of older releases of torch")
    twins = Twins(torch.nn.Linear(8, 3), sgd, loss)
    for _ in range(2):
        twins.both(torch.randn(4, 8))
    twins.compare()
    assert [graph.name for graph in twins.step.fairlead.placement.graphs] == ["step_0"]


def test_steps_of_one_model_with_two_optimizers_take_turns() -> None:
    model = Mlp()
    reference = copy.deepcopy(model)
    halves = [[m.up, m.down] for m in (model, reference)]
    mine, eagers = ([sgd(half.parameters()) for half in each] for each in halves)
    steps = [fairlead.compile_step(model, optimizer, squared, backend="eager") for optimizer in mine]
    for turn in range(4):
        x = torch.randn(3, 8)
        steps[turn % 2](x)
        reference.zero_grad()
        squared(reference, x).backward()
        eagers[turn % 2].step()
    torch.testing.assert_close(model.state_dict(), reference.state_dict())


def test_an_error_in_the_loss_leaves_everything_as_it_was() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    with pytest.raises(StepError, match="the loss function is no one graph"):
        twins.step(torch.randn(3, 7))
    twins.both(torch.randn(3, 8))
    twins.compare()
    assert twins.optimizer.param_groups[0]["lr"] == 1e-2


def test_disabled_a_step_runs_in_eager_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_DISABLE", "1")
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    twins.both(torch.randn(3, 8))
    twins.compare()
    assert twins.compiled == 0


def _branches(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).sum() if x.sum() > 0 else model(-x).sum()


def _hooked(model: torch.nn.Module) -> Any:
    model.weight.register_hook(lambda gradient: gradient * 2)
    return adamw(model.parameters())


def _hooked_module(model: torch.nn.Module) -> Any:
    model.register_full_backward_hook(lambda *given: None)
    return adamw(model.parameters())


def _hooked_step(model: torch.nn.Module) -> Any:
    optimizer = adamw(model.parameters())
    optimizer.register_step_post_hook(lambda *given: None)
    return optimizer


@pytest.mark.parametrize(
    ("make", "loss", "message"),
    [
        (lambda m: torch.optim.LBFGS(m.parameters()), squared, "calls the loss several times"),
        (lambda m: torch.optim.Adafactor(m.parameters()), squared, "the optimizer's step is no one graph"),
        (lambda m: torch.optim.AdamW(m.parameters(), differentiable=True), squared, "is differentiable"),
        (lambda m: adamw([torch.zeros(2)]), squared, "no weights that require gradients"),
        (lambda m: adamw([torch.zeros(2, requires_grad=True)]), squared, "the loss depends on none of its weights"),
        (_hooked, squared, "hooks of its gradient"),
        (_hooked_module, squared, "hooks of its backward"),
        (_hooked_step, squared, "hooks of its step"),
        (lambda m: adamw(m.parameters()), lambda m, x: m(x), "gave a loss of shape (4, 3)"),
        (lambda m: adamw(m.parameters()), lambda m, x: m(x).detach().sum(), "depends on no weights"),
        (lambda m: adamw(m.parameters()), lambda m, x: {"loss": m(x).sum()}, "gave no tensor for its loss"),
        (lambda m: adamw(m.parameters()), lambda m, x: 3.0, "gave a float"),
        (lambda m: adamw(m.parameters()), _branches, "the loss function is no one graph: "),
    ],
)
def test_what_is_no_one_graph_is_an_error_that_says_why(make: Any, loss: Any, message: str) -> None:
    model = torch.nn.Linear(8, 3)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(StepError) as failure:
        fairlead.compile_step(model, make(model), loss, backend="eager")(torch.randn(4, 8))
    assert message in failure.value.what
    assert failure.value.where
    assert failure.value.next
    torch.testing.assert_close(model.state_dict(), before)
    assert model.weight.grad is None


def test_a_grad_scaler_is_declined_wherever_it_is() -> None:
    model, scaler = torch.nn.Linear(8, 3), torch.amp.GradScaler("cpu")
    with pytest.raises(StepError, match="GradScaler decides after the backward"):
        fairlead.compile_step(model, adamw(model.parameters()), lambda m, x: scaler.scale(m(x).sum()))
    step = fairlead.compile_step(model, adamw(model.parameters()), squared, backend="eager")
    with pytest.raises(StepError, match="GradScaler decides after the backward"):
        step(torch.randn(4, 8), scaler)


def test_arguments_of_the_wrong_kind_are_told() -> None:
    model = torch.nn.Linear(8, 3)
    optimizer = adamw(model.parameters())
    with pytest.raises(ArgumentError, match="a list is no optimizer"):
        fairlead.compile_step(model, [optimizer], squared)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="loss_fn is a Tensor"):
        fairlead.compile_step(model, optimizer, torch.zeros(()))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="model is a function"):
        fairlead.compile_step(squared, optimizer, squared)  # type: ignore[arg-type]
    with pytest.raises(StepError, match="in inference mode"), torch.inference_mode():
        fairlead.compile_step(model, optimizer, squared, backend="eager")(torch.randn(4, 8))


def test_nothing_is_logged_and_gradients_of_before_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    squared(twins.model, torch.ones(3, 8)).backward()
    with caplog.at_level(logging.WARNING), torch.no_grad():
        twins.step(torch.zeros(3, 8))
    assert caplog.messages == []
    assert all(p.grad is None for p in twins.model.parameters())
