"""Control flow, custom operators and Python floats, through every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_over
from torch.utils.checkpoint import checkpoint

import fairlead
from fairlead.placement import Why

SMALL = ("eager", "onnxrt", "openvino", "openxla")
"""The backends that compile in a moment."""

RELEASE = ".".join(torch.__version__.split(".")[:2])

EAGER_GRADIENTS = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
"""Torch's own control flow asks intermediate tensors for their gradients when it runs in eager."""


def declines(compiled: Any) -> dict[str, str]:
    return {d.op: d.reason for d in compiled.fairlead.placement.declines}


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


class Gate(torch.nn.Module):
    """Two ways through a layer, chosen by the data."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(x * 2)
        y = torch.cond(x.sum() > 4, lambda v: self.wide(v).tanh(), lambda v: self.narrow(v) * v.shape[0], (x,))
        return torch.tanh(y) + x


def test_both_ways_of_a_branch_are_taken(backend: str) -> None:
    model = Gate().eval()
    compiled = fairlead.compile(model, backend=backend, dynamic=True)
    with torch.no_grad():
        for x in (torch.ones(3, 8), torch.full((5, 8), -1.0), torch.full((4, 8), 0.01)):
            close(compiled(x), model(x))
    (graph,) = compiled.fairlead.placement.graphs
    (placed,) = (n for n in graph.nodes if n.op == "hop.cond")
    assert {"aten.linear.default", "aten.tanh.default"} <= set(placed.within)
    if backend in ("onnxrt", "openvino"):
        assert declines(compiled) == {}
        assert graph.native == graph.total


@pytest.mark.parametrize("name", SMALL)
@EAGER_GRADIENTS
def test_a_branch_learns(name: str) -> None:
    model = Gate()
    compiled = fairlead.compile(model, backend=name)
    for x in (torch.rand(3, 8), torch.full((3, 8), 0.01)):
        found, expected = [], []
        for call, gradients in ((compiled, found), (model, expected)):
            model.zero_grad()
            y = x.clone().requires_grad_()
            call(y).square().sum().backward()
            gradients += [y.grad, *(p.grad.clone() for p in model.parameters())]
        close(found, expected)


def newton(x: Tensor) -> tuple[Tensor, Tensor]:
    def step(count: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
        return count + 1, (root + x / root) / 2

    def go_on(count: Tensor, root: Tensor) -> Tensor:
        return (count < 30) & ((root * root - x).abs().max() > 1e-4)

    return while_loop(go_on, step, (torch.zeros((), dtype=torch.int64), x + 1))


def smoothed(x: Tensor) -> tuple[Tensor, Tensor]:
    return scan(lambda state, row: (state * 0.9 + row, state * 0.9 + row.sin()), torch.zeros_like(x[0]), x)


def rows(x: Tensor) -> Tensor:
    return map_over(lambda row, weight: (row * weight).softmax(0), x.exp(), x[0].cos())


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("function", [newton, smoothed, rows], ids=lambda f: f.__name__)
def test_loops_run_as_in_eager(function: Callable[[Tensor], Any], name: str) -> None:
    compiled = fairlead.compile(function, backend=name, dynamic=True)
    for n in (4, 7):
        x = torch.rand(n, 5) + 0.5
        close(compiled(x), function(x))
    assert all("not captured" not in reason for reason in declines(compiled).values())


@pytest.mark.skipif(RELEASE == "2.11", reason="torch 2.11 refuses it, as the next test says")
@pytest.mark.parametrize("name", SMALL)
@EAGER_GRADIENTS
def test_a_scan_learns(name: str) -> None:
    compiled = fairlead.compile(smoothed, backend=name)
    gradients = []
    for call in (compiled, smoothed):
        x = torch.linspace(0, 1, 12).view(4, 3).requires_grad_()
        last, seen = call(x)
        (last.sum() + seen.square().sum()).backward()
        gradients.append(x.grad)
    close(*gradients)


@pytest.mark.skipif(RELEASE != "2.11", reason="releases before and after it trace the gradient of a scan")
def test_torch_refuses_a_scan_that_learns_whatever_the_backend() -> None:
    x = torch.rand(4, 3, requires_grad=True)
    for compiled in (fairlead.compile(smoothed, backend="eager"), torch.compile(smoothed, backend="aot_eager")):
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="scan might be aliasing the input"):
            compiled(x)


def test_a_loop_that_inductor_takes_runs_as_in_eager() -> None:
    compiled = fairlead.compile(newton, backend="inductor", fallback=())
    x = torch.rand(6) + 0.5
    close(compiled(x), newton(x))
    assert [p.backend for g in compiled.fairlead.placement.graphs for p in g.parts] == ["inductor"]


@pytest.mark.parametrize("name", SMALL)
def test_control_flow_that_draws_draws_eager_s_numbers(name: str) -> None:
    def noisy(x: Tensor) -> Tensor:
        x = torch.dropout(x, 0.5, True)
        return torch.cond(x.sum() > 0, lambda y: torch.dropout(y, 0.5, True), lambda y: y * 2, (x,)) + torch.rand(8)

    compiled = fairlead.compile(noisy, backend=name)
    results = []
    for call in (compiled, noisy):
        torch.manual_seed(7)
        results.append(call(torch.ones(8)))
    close(*results)


@pytest.mark.parametrize("name", SMALL)
def test_a_checkpointed_dropout_drops_the_same_again(name: str) -> None:
    def noisy(x: Tensor) -> Tensor:
        return checkpoint(lambda y: torch.dropout(torch.tanh(y * 2), 0.5, True) * y, x, use_reentrant=False)

    compiled = fairlead.compile(noisy, backend=name)
    results = []
    for call in (compiled, noisy):
        torch.manual_seed(11)
        x = torch.ones(32, requires_grad=True)
        y = call(x)
        y.sum().backward()
        results.append((y.detach(), x.grad, torch.rand(2)))
    close(*results)
    assert all("not captured" not in reason for reason in declines(compiled).values())


@pytest.fixture(scope="module")
def shifted() -> Callable[..., Tensor]:
    """A registered operator that writes to one of its arguments, with a kernel of its own."""

    @torch.library.custom_op("fairlead_semantics::shift", mutates_args={"total"})
    def shift(x: Tensor, total: Tensor, by: float = 1.0) -> Tensor:
        total.add_(x.sum(0))
        return x + by

    @shift.register_fake
    def _(x: Tensor, total: Tensor, by: float = 1.0) -> Tensor:
        return torch.empty_like(x)

    return shift


def test_an_operator_that_writes_to_its_argument_does_so_in_a_program(
    backend: str, shifted: Callable[..., Tensor]
) -> None:
    def program(x: Tensor, total: Tensor) -> Tensor:
        return torch.tanh(shifted(torch.relu(x), total, 0.5)) + total

    compiled = fairlead.compile(program, backend=backend)
    found, expected = torch.zeros(3), torch.zeros(3)
    with torch.no_grad():
        for _ in range(2):
            x = torch.randn(4, 3)
            close(compiled(x, found), program(x, expected))
    close(found, expected)
    if backend in ("onnxrt", "openvino"):
        assert list(declines(compiled)) == ["fairlead_semantics.shift.default"]


def test_python_floats_that_may_change_cost_no_fallback() -> None:
    config = transformers.GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=1, eos_token_id=2
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    compiled = fairlead.compile(model, backend="openvino", dynamic=True, max_fallback=0)
    with torch.no_grad():
        for size in ((2, 9), (3, 11)):
            ids = torch.randint(3, 60, size)
            close(compiled(ids, use_cache=False).logits, model(ids, use_cache=False).logits)
    (graph,) = compiled.fairlead.placement.graphs
    assert graph.native == graph.total
    assert [n.reason for n in graph.nodes if n.why is Why.number] == ["one number, which torch computes"] * 3


@pytest.mark.parametrize("name", SMALL)
def test_a_float_argument_keeps_its_value(name: str) -> None:
    def scaled(x: Tensor, factor: float) -> Tensor:
        return torch.tanh(x * factor) + factor / 3 + factor * 2

    compiled = fairlead.compile(scaled, backend=name, dynamic=True)
    for factor in (0.5, 0.25, -3.0):
        x = torch.randn(3, 4)
        close(compiled(x, factor), scaled(x, factor))
    assert len(compiled.fairlead.placement.graphs) == 1
    assert declines(compiled) == {}
