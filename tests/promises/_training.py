"""Promises about training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ._catalogue import Section
from ._through import Through

__all__ = ["PROMISES"]

promise = Section("Training")
PROMISES = promise.promises


def learn(call: Callable[..., Tensor], model: nn.Module, x: Tensor) -> list[Tensor | None]:
    """The gradients of the input and of the parameters."""
    given = x.clone().requires_grad_()
    model.zero_grad()
    call(given).square().sum().backward()
    return [given.grad, *(p.grad for p in model.parameters())]


@promise("Training, with a forward and a backward graph")
def trains(through: Through) -> None:
    net = through.net()
    x = through.randn(3, 4)
    through.close(learn(through.compile(net), net, x), learn(net, net, x))
    assert through.kinds == ["forward", "backward"]


@promise("The steps of an optimizer are seen by the next call")
def curve(through: Through) -> None:
    x, losses = through.randn(3, 4), []
    for wrap in (through.compile, lambda model: model):
        net = through.net()
        call, optimizer = wrap(net), torch.optim.AdamW(net.parameters(), 1e-2)
        for _ in range(4):
            optimizer.zero_grad()
            loss = call(x).square().sum()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            losses.append([loss.detach(), call(x)])
    through.close(*losses)
    assert through.kinds == ["forward", "backward", "inference"]


def optimized(through: Through, make: Callable[..., torch.optim.Optimizer]) -> None:
    x, weights = through.randn(3, 4), []
    for wrap in (through.compile, lambda step: step):
        net = through.net()
        optimizer = make(net.parameters(), lr=0.1)

        def step(optimizer: torch.optim.Optimizer = optimizer) -> None:
            optimizer.step()

        call = wrap(step)
        for _ in range(3):
            learn(net, net, x)
            call()
        weights.append(list(net.state_dict().values()))
    through.close(*weights)
    assert through.graphs, "the step was not compiled"


@promise("A compiled step of SGD with momentum")
def sgd(through: Through) -> None:
    optimized(through, lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9))


@promise("A compiled step of Adam")
def adam(through: Through) -> None:
    optimized(through, torch.optim.Adam)


@promise(
    "A whole training step is one graph",
    declined={"cudagraphs": "no whole training steps"},
)
def whole_step(through: Through) -> None:
    x, trained = through.randn(3, 4), []
    for is_one in (True, False):
        net = through.net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        def loss(model: nn.Module, x: Tensor) -> Tensor:
            found: Tensor = model(x).square().sum()
            return found

        step = through.step(net, optimizer, loss) if is_one else None
        for _ in range(3):
            if step is not None:
                step(x)
                continue
            optimizer.zero_grad()
            loss(net, x).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        trained.append(list(net.state_dict().values()))
    through.close(*trained)
    assert [graph.name for graph in through.graphs] == ["step_0"]


@promise("Forward hooks and pre-hooks")
def forward_hooks(through: Through) -> None:
    net = through.net()
    net.up.register_forward_hook(lambda module, args, result: result * 2)
    net.down.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    x = through.randn(3, 4)
    through.close(learn(through.compile(net, fullgraph=True), net, x), learn(net, net, x))
    assert through.kinds == ["forward", "backward"]


@promise("Backward hooks of modules")
def backward_hooks(through: Through) -> None:
    net, seen = through.net(), []
    net.up.register_full_backward_hook(lambda module, given, result: seen.append(result[0].detach().clone()))
    x = through.randn(3, 4)
    through.close(learn(through.compile(net), net, x), learn(net, net, x))
    found, expected = seen
    through.close(found, expected)
    assert {"forward", "backward"} <= set(through.kinds)


@promise("Hooks of tensors")
def tensor_hooks(through: Through) -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.tanh(x)
        y.register_hook(lambda gradient: gradient * 2)
        return y * 3

    gradients = []
    for call in (through.compile(program), program):
        x = torch.linspace(-1, 1, 12, device=through.device).view(3, 4).requires_grad_()
        call(x).sum().backward()
        gradients.append(x.grad)
    through.close(*gradients)
    assert through.kinds == ["forward", "backward"]


@promise("Checkpointing")
def checkpointed(through: Through) -> None:
    net = through.net()

    def program(x: Tensor) -> Any:
        return checkpoint(net, x, use_reentrant=False)

    x = through.randn(3, 4)
    through.close(learn(through.compile(program, fullgraph=True), net, x), learn(program, net, x))
    assert through.kinds == ["forward", "backward"]
    assert sum(n.op == "aten.tanh.default" for n in through.graphs[1].nodes) == 1, "computed again in the backward"


@promise("Autocast around a program, in training")
def autocast(through: Through) -> None:
    net = through.net()
    x = through.randn(3, 4)
    with torch.autocast(through.device, torch.bfloat16):
        found, expected = (learn(call, net, x) for call in (through.compile(net), net))
    assert all(g is not None and g.dtype is torch.float32 for g in found)
    torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2)
    assert through.kinds == ["forward", "backward"]


@promise("Autocast in a program")
def autocast_inside(through: Through) -> None:
    net = through.net()

    def program(x: Tensor) -> Tensor:
        with torch.autocast(through.device, torch.bfloat16):
            return net(x)

    with torch.no_grad():
        x = through.randn(3, 4)
        found, expected = through.compile(program, fullgraph=True)(x), program(x)
    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2)


class Clipped(torch.autograd.Function):
    """The identity, with a gradient of at most 1."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return gradient.clamp(-1, 1)


@promise("`torch.autograd.Function`")
def autograd_function(through: Through) -> None:
    net = through.net()

    def program(x: Tensor) -> Any:
        return Clipped.apply(net(x)) * 3

    x = through.randn(3, 4)
    through.close(learn(through.compile(program, fullgraph=True), net, x), learn(program, net, x))
    assert through.kinds == ["forward", "backward"]
