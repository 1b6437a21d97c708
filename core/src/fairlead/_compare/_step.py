"""One call of a model, or one training step, and every tensor that it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from fairlead._accuracy import GRADIENT, Tensors
from fairlead._models import Model, tensors_of

__all__ = ["Call", "results", "run", "step"]

Call: TypeAlias = Callable[..., Any]


def step(model: Model, call: Call, tensors: Tensors, training: bool) -> Callable[[], Any]:
    """What is timed: one call; or, in training, forward, loss and backward. It returns the outputs."""
    args, kwargs = model.inputs(tensors)
    if not training:
        return lambda: call(*args, **kwargs)

    def train() -> Any:
        model.module.zero_grad(set_to_none=True)
        output = call(*args, **kwargs)
        loss_of(output).backward()  # type: ignore[no-untyped-call]
        return output

    return train


def run(model: Model, call: Call, tensors: Tensors, training: bool) -> Any:
    """One `step`, with gradients on in training and off otherwise."""
    with torch.set_grad_enabled(training):
        return step(model, call, tensors, training)()


def results(model: Model, call: Call, tensors: Tensors, training: bool) -> Tensors:
    """The output tensors by name and, in training, every parameter's gradient and every buffer."""
    found = {name: tensor.detach() for name, tensor in tensors_of(run(model, call, tensors, training)).items()}
    if training:
        for name, parameter in model.module.named_parameters():
            if parameter.grad is not None:
                found[GRADIENT + name] = parameter.grad
        found.update((f"buffer {name}", buffer.clone()) for name, buffer in model.module.named_buffers())
    return found


def loss_of(output: Any) -> torch.Tensor:
    """The output's ``loss`` where it has one, else the sum of the mean squares of its floating-point tensors."""
    tensors = tensors_of(output)
    if (loss := tensors.get("loss")) is not None:
        return loss
    terms = [tensor.float().square().mean() for tensor in tensors.values() if tensor.requires_grad]
    return torch.stack(terms).sum()
