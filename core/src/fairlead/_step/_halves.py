"""The two functions of a step that Dynamo compiles, and a call of both, which is one call of one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from fairlead._capture import InputSource
from fairlead._capture._dynamo import APART, capturing_numbers, has_backward_hooks, own_code
from fairlead._capture._refusals import DynamoError, told
from fairlead._capture._whole_step import OtherGradients, marked
from fairlead._compile import Session
from fairlead._step._backends import Call, LossBackend, UpdateBackend
from fairlead._step._optimizer import Updated
from fairlead.errors import StepError

__all__ = ["Halves", "Subject"]


class Subject(NamedTuple):
    """What a step is made of: ``step`` is the optimizer's own, and ``dynamic`` what `torch.compile` takes for it."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    step: Callable[[torch.optim.Optimizer], Any]
    loss: Callable[..., Any]
    before_update: Callable[[], object] | None
    dynamic: bool | None


class Halves:
    """The loss and the update as they are for one set of weights that are trained.

    Dynamo does not look at ``requires_grad`` of what an optimizer holds: for other weights there are other halves.
    """

    def __init__(self, subject: Subject, updated: Updated, weights: Sequence[torch.Tensor], session: Session) -> None:
        self._subject = subject
        self._updated = updated
        self._weights = weights
        self._used = tuple(range(len(weights)))
        self._of_loss, self._of_update = LossBackend(session), UpdateBackend(session)
        model, optimizer, step, loss_fn, before_update, dynamic = subject

        def loss(*args: Any, **kwargs: Any) -> Any:
            result = loss_fn(model, *args, **kwargs)
            if type(result) is tuple and isinstance(result[0], torch.Tensor):
                return (marked(result[0]), *result[1:])
            return marked(result) if isinstance(result, torch.Tensor) else result

        def update() -> None:
            if before_update is not None:
                before_update()
            step(optimizer)

        self._loss = torch.compile(own_code(loss), backend=self._of_loss, fullgraph=True, dynamic=dynamic, **APART)
        self._update = torch.compile(own_code(update), backend=self._of_update, fullgraph=True, **APART)

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """One step; the update is traced anew where the loss depends on other weights than those of the last call."""
        state = self._subject.optimizer.state
        known = set(map(id, state))
        try:
            return self._run(args, kwargs)
        except OtherGradients as other:
            self._used = other.used
            for place, weight in enumerate(self._weights):
                if place not in other.used and id(weight) not in known:
                    state.pop(weight, None)
            return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        with self._updated.traceable(self._weights, self._used) as stand_ins:
            call = Call(self._weights, stand_ins, self._names, lambda: self._loss(*args, **kwargs))
            self._of_loss.call = self._of_update.call = call
            try:
                with torch.no_grad(), capturing_numbers():
                    self._update()
            except DynamoError as error:
                self._check_hooks()
                half = "loss function" if call.update is not None else "optimizer's step"
                raise _uncaptured(half, error) from error
            finally:
                self._of_loss.call = self._of_update.call = None
        if call.update is None:
            raise StepError(
                "the optimizer updates nothing: the loss depends on none of its weights",
                where=f"fairlead.compile_step, {type(self._subject.optimizer).__name__}",
                next="pass the optimizer of the model's parameters",
            )
        self._updated.note_step()
        return call.result

    def _names(self) -> dict[int, InputSource]:
        """What the tensors of model and optimizer are called; asked when a graph is made."""
        self._check_hooks()
        model, state = self._subject.model, self._subject.optimizer.state
        names = {id(p): InputSource("parameter", name) for name, p in model.named_parameters()}
        names.update((id(b), InputSource("buffer", name)) for name, b in model.named_buffers())
        for weight, values in [(w, state[w]) for w in self._weights if w in state]:
            name = names[id(weight)].name if id(weight) in names else "a weight"
            tensors = {key: v for key, v in values.items() if isinstance(v, torch.Tensor)}
            names.update((id(v), InputSource("", f"{key} of {name}")) for key, v in tensors.items())
        return names

    def _check_hooks(self) -> None:
        if has_backward_hooks(self._subject.model):
            raise StepError(
                "a module has hooks of its backward, which are no part of one graph",
                where=f"fairlead.compile_step, {type(self._subject.model).__name__}",
                next="remove them, or train with fairlead.compile(model) and the optimizer's own step",
            )


def _uncaptured(half: str, error: Exception) -> StepError:
    found = told(error)
    return StepError(
        f"the {half} is no one graph: {found.reason}",
        where=found.where,
        next=found.hint or "change those lines, or train with fairlead.compile(model) and the optimizer's own step",
    )
