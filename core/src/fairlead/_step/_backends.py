"""What Dynamo calls with the graph of a loss and with that of an update, and the programs of both together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from fairlead._capture import InputSource, Tracing, capture_step
from fairlead._capture._account import recompilation, time_frame
from fairlead._capture._draws import keep_draws
from fairlead._capture._dynamo import deny_exporting
from fairlead._capture._whole_step import OtherGradients, Traced, WholeStep, loss_of, whole_step
from fairlead._compile import Session
from fairlead._sink import SessionSink
from fairlead.errors import FairleadError, StepError

__all__ = ["Call", "LossBackend", "UpdateBackend"]

deny_exporting(__name__)


class Call:
    """One training step while it runs: what it was called with, and what its two halves tell each other.

    ``stand_ins`` has the places among ``weights`` by the identity of what stands for their gradients; ``names`` says
    what tensors are, by identity; ``loss`` runs the compiled loss, and ``result`` is what that gave.
    """

    def __init__(
        self,
        weights: Sequence[torch.Tensor],
        stand_ins: Mapping[int, int],
        names: Callable[[], Mapping[int, InputSource]],
        loss: Callable[[], Any],
    ) -> None:
        self.weights = weights
        self.stand_ins = stand_ins
        self.trained = frozenset(id(weights[place]) for place in stand_ins.values())
        self.names = names
        self.loss = loss
        self.update: Traced | None = None
        self.outputs: Sequence[Any] | None = None
        self.result: Any = None


class UpdateBackend:
    """Compiles nothing: the graph of an update runs as a part of the loss's, which is called in its place."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.call: Call | None = None

    def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        _note(self.session, gm)

        def run(*inputs: Any) -> Sequence[Any]:
            call = self.call
            assert call is not None, "an update is called within a step"
            call.update = Traced(gm, inputs)
            with torch.enable_grad():
                call.result = call.loss()
            if call.outputs is None:
                raise StepError(
                    f"the loss function gave a {type(call.result).__name__} that is computed of no weights",
                    where="fairlead.compile_step",
                    next="return the loss, a tensor with one number, or a tuple that begins with it",
                )
            return call.outputs

        return run


class LossBackend:
    """Compiles the graph of a loss, its gradients and the update that takes them as one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.call: Call | None = None

    def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        _note(self.session, gm)
        drawn = keep_draws(gm) if self.session.request.rng == "eager" else 0
        programs = _Programs(self, gm, inputs, drawn)
        programs.begin(inputs)
        return programs.run


class _Program(NamedTuple):
    """A loss with one update; ``trained`` are the identities of the weights that the loss depends on.

    ``form`` is all that ``function`` was made of: it serves other tensors as well, as after a state was loaded.
    """

    whole: WholeStep
    update: torch.fx.GraphModule
    function: Callable[..., Sequence[Any]]
    trained: frozenset[int]
    form: object

    def reads(self, inputs: Sequence[Any]) -> bool:
        """Whether the loss is still that of the weights that the update writes to."""
        return all(inputs[i] is t for i, t in self.whole.shared)


class _Programs:
    """The programs of one graph of a loss: one for each graph of an update that came with it.

    ``drawn`` of its outputs are random numbers that nobody asked for.
    """

    def __init__(self, target: LossBackend, gm: torch.fx.GraphModule, inputs: Sequence[Any], drawn: int) -> None:
        self._target = target
        self._gm = gm
        self._drawn = drawn
        self._tracing = Tracing(inputs)
        self._programs: list[_Program] = []
        self._other: OtherGradients | None = None
        self._failure: FairleadError | None = None

    def begin(self, inputs: Sequence[Any]) -> None:
        """Compile while Dynamo is at it, which takes along what follows for sizes, and may begin anew for that.

        What we raise is raised by the calls.
        """
        try:
            self._made(inputs)
        except OtherGradients as other:
            self._other = other
        except FairleadError as error:
            self._failure = error
            return
        self._tracing.release()

    def run(self, *inputs: Any) -> Sequence[Any]:
        """What Dynamo calls for the loss; the update has been called, and waits for its outputs."""
        if self._failure is not None:
            raise self._failure
        if self._other is not None:
            other, self._other = self._other, None
            raise other
        call, update = self._both()
        known = [p for p in self._programs if p.reads(inputs)]
        program = next((p for p in known if p.update is update.gm), None)
        if program is None:
            if known and known[0].trained != call.trained:
                raise OtherGradients(tuple(i for i, w in enumerate(call.weights) if id(w) in known[0].trained))
            program = self._made(inputs)
        whole = program.whole
        with torch.no_grad():
            outputs = program.function(*inputs, *whole.fixed, *(update.inputs[i] for i in whole.passed))
        call.outputs = outputs[whole.results :]
        return outputs[: whole.results - self._drawn]

    def _both(self) -> tuple[Call, Traced]:
        call = self._target.call
        assert call is not None, "a loss is called within a step"
        assert call.update is not None, "an update calls for its loss"
        return call, call.update

    def _made(self, inputs: Sequence[Any]) -> _Program:
        call, update = self._both()
        _check_loss(loss_of(self._gm))
        whole = whole_step(Traced(self._gm, inputs), update, call.weights, call.stand_ins, call.names())
        given = [*inputs, *whole.fixed, *(update.inputs[i] for i in whole.passed)]
        form = _form(whole, given[len(inputs) :])
        function = next((p.function for p in self._programs if p.form == form), None)
        if function is None:
            function = capture_step(whole, given, self._tracing, SessionSink(self._target.session))
        self._programs = [p for p in self._programs if p.update is not update.gm]
        self._programs.append(_Program(whole, update.gm, function, call.trained, form))
        return self._programs[-1]


def _form(whole: WholeStep, given: Sequence[Any]) -> object:
    """All that a program is made of, given one loss; equal to nothing where the update has bodies of control flow."""
    bodies = (n for n in whole.gm.graph.nodes if n.op in ("get_attr", "call_module"))
    if any(str(n.target).startswith("update.") for n in bodies):
        return object()
    return whole.gm.code, tuple(map(_kind, given))


def _kind(given: Any) -> object:
    if not isinstance(given, torch.Tensor):
        return given
    return type(given), given.dtype, given.device, given.shape, given.stride(), given.requires_grad


def _note(session: Session, gm: torch.fx.GraphModule) -> None:
    time_frame()
    if (again := recompilation(gm)) is not None:
        session.recompilations.append(again)


def _check_loss(loss: torch.Tensor | None) -> None:
    what = None
    if loss is None:
        what = "gave no tensor for its loss"
    elif loss.numel() != 1:
        what = f"gave a loss of shape {tuple(loss.shape)}"
    elif not loss.requires_grad:
        what = "gave a loss that depends on no weights"
    if what is not None:
        raise StepError(
            f"the loss function {what}",
            where="fairlead.compile_step",
            next="return the loss, a tensor with one number, or a tuple that begins with it",
        )
