"""``fairlead.compile_step``: a training step that is one graph."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead import _settings
from fairlead._arguments import request_of
from fairlead._compile import Request, Rng
from fairlead._handle import Handle
from fairlead._step._halves import Halves, Subject
from fairlead._step._optimizer import Updated, update_of
from fairlead._verified import Verify
from fairlead.backend import Precision
from fairlead.errors import ArgumentError, StepError
from fairlead.torch import DynamoBackend

__all__ = ["TrainingStep", "compile_step"]


class TrainingStep:
    """A training step that runs as one graph, made by `compile_step`: call it with what the loss function takes."""

    def __init__(self, subject: Subject, request: Request) -> None:
        self._subject = subject
        self._updated = Updated(subject.optimizer)
        self._target = DynamoBackend(request)
        self._target.session.check()
        self._handle = Handle(self._target, fullgraph=True)
        self._halves: dict[tuple[int, ...], Halves] = {}
        self._lock = threading.Lock()

    @property
    def fairlead(self) -> Handle:
        """What ran where, as of any compiled program: ``placement`` has one graph for each that was compiled."""
        return self._handle

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run one step. Returns what the loss function returns, without gradients."""
        if _settings.disabled():
            return self._eagerly(args, kwargs)
        _check_call((*args, *kwargs.values()))
        with self._lock:
            weights = self._updated.weights()
            self._updated.check(weights)
            key = tuple(map(id, weights))
            if key not in self._halves:
                self._halves[key] = Halves(self._subject, self._updated, weights, self._target.session)
            return self._halves[key](args, kwargs)

    def _eagerly(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        model, optimizer, _, loss_fn, before_update, _ = self._subject
        optimizer.zero_grad()
        with torch.enable_grad():
            result = loss_fn(model, *args, **kwargs)
            (result[0] if type(result) is tuple else result).backward()
        if before_update is not None:
            before_update()
        optimizer.step()
        optimizer.zero_grad()
        return (result[0].detach(), *result[1:]) if type(result) is tuple else result.detach()

    def __repr__(self) -> str:
        return f"<fairlead training step on {self._handle.backend}: {len(self._handle.placement.graphs)} graphs>"


def compile_step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[..., Any],
    *,
    before_update: Callable[[], object] | None = None,
    backend: str | None = None,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    fallback: Sequence[str] | str | bool | None = ("inductor", "eager"),
    max_fallback: int | float | None = None,
    verify: Verify | None = None,
    rng: Rng | None = None,
    precision: Precision | None = None,
) -> TrainingStep:
    """A whole training step as one graph: forward, backward and the optimizer's update.

    ``step = compile_step(model, optimizer, loss_fn)``, then ``loss = step(*args)``, does what eager mode does in
    ``optimizer.zero_grad(); loss = loss_fn(model, *args); loss.backward(); before_update(); optimizer.step()``, and
    another ``zero_grad()``: parameters, buffers and the optimizer's state are updated in place, in the caller's own
    objects, and no weight of the optimizer has a ``grad`` afterwards.

    ``loss_fn(model, *args, **kwargs)`` returns the loss, a tensor with one number, or a tuple that begins with it; what
    it returns is what the step returns, without gradients. ``before_update`` is called without arguments where
    ``p.grad`` is there, to clip gradients. Both are captured, as with ``fullgraph=True``. The other arguments are those
    of `fairlead.compile`. A backend takes whole steps where its capabilities say ``training_steps``; of others the
    cascade takes over. Learning rates are read at each step, and another one compiles nothing.

    Raises `fairlead.errors.StepError` for what is no one graph, at the first call where it cannot be told before:
    optimizers that call the loss themselves, hooks of gradients, ``GradScaler``, graph breaks.

    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> _ = torch.nn.init.ones_(model.weight)
    >>> optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    >>> step = compile_step(model, optimizer, lambda model, x: model(x).square().mean(), backend="eager")
    >>> losses = [step(torch.ones(4, 2)).item() for _ in range(3)]
    >>> losses[0] > losses[1] > losses[2], len(step.fairlead.placement.graphs)
    (True, 1)
    """
    request = request_of(backend, mode, options or {}, fallback, max_fallback, verify, rng, precision)
    for name, function in (("loss_fn", loss_fn), ("before_update", before_update)):
        if not callable(function) and (name == "loss_fn" or function is not None):
            raise _argument(f"{name} is a {type(function).__name__}", "pass a function")
        _check_scaler(_captured_by(function), name)
    if not isinstance(model, torch.nn.Module):
        raise _argument(f"model is a {type(model).__name__}", "pass the module, and what is around it in loss_fn")
    if any(isinstance(m, torch.nn.parallel.DistributedDataParallel) for m in model.modules()):
        raise StepError(
            "DistributedDataParallel reduces gradients in hooks, which are no part of one graph",
            where=f"fairlead.compile_step, {type(model).__name__}",
            next="compile what is wrapped with fairlead.compile, and train in three graphs",
        )
    subject = Subject(model, optimizer, update_of(optimizer), loss_fn, before_update, dynamic)
    return TrainingStep(subject, request)


def _captured_by(function: Callable[..., Any] | None) -> list[object]:
    """What a function finds around it."""
    if not inspect.isfunction(function):
        return []
    found = inspect.getclosurevars(function)
    return [*found.nonlocals.values(), *found.globals.values()]


def _check_scaler(values: Sequence[object], where: str) -> None:
    if any(isinstance(v, torch.amp.GradScaler) for v in values):
        raise StepError(
            "GradScaler decides after the backward whether there is an update, which is no one graph",
            where=f"fairlead.compile_step, {where}",
            next="use torch.autocast with bfloat16, which needs no scaling, or train with fairlead.compile(model)",
        )


def _check_call(values: Sequence[object]) -> None:
    _check_scaler(values, "the arguments of a step")
    if torch.is_inference_mode_enabled():
        raise StepError(
            "a training step was called in inference mode, in which there are no gradients",
            where="fairlead.compile_step",
            next="call it outside of torch.inference_mode()",
        )


def _argument(what: str, advice: str) -> ArgumentError:
    return ArgumentError(what, where="fairlead.compile_step", next=advice)
