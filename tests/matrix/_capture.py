"""Programs to graphs with this torch, and what the graphs compute on inputs that can be drawn again."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import torch
from torch.utils._pytree import tree_leaves

from fairlead._capture import Captured, capture
from fairlead.interpret import run, to_fx
from fairlead.ir import Graph, Kind, verify
from fairlead.passes import canonicalize, recognize_composites
from tests.matrix._summary import Summary, described, drawn, summary

if TYPE_CHECKING:
    from tests.matrix._programs import Program

__all__ = ["Golden", "capture_program"]


class Golden(NamedTuple):
    """A graph, the inputs it is run with, and what it computes from them."""

    graph: Graph
    inputs: tuple[str, ...]
    outputs: tuple[Summary | None, ...]


class _Recorder:
    """Keeps the graphs of a program in their normal form, with what they are called with the first time."""

    def __init__(self) -> None:
        self.golden: list[Golden] = []

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        graph = verify(recognize_composites(canonicalize(captured.graph)))
        module = to_fx(graph)
        constants = tuple(captured.constants.values())

        def call(args: list[Any]) -> list[Any]:
            given = [*args, *constants]
            args.clear()
            texts = tuple(described(i.value.type, x) for i, x in zip(graph.inputs, given, strict=True))
            outputs = tuple(map(summary, run(graph, drawn(graph, texts))))
            self.golden.append(Golden(graph, texts, outputs))
            return list(module(*given))

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        raise AssertionError(f"a {kind} graph of the corpus cannot be captured: {reason}")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def capture_program(program: Program) -> list[Golden]:
    """The graphs of a program, its results compared with those of eager; an AssertionError where they differ."""
    torch._dynamo.reset()
    recorder = _Recorder()
    dynamic = None if program.dynamic else False
    compiled = torch.compile(
        program.function, backend=lambda gm, inputs: capture(gm, inputs, recorder), dynamic=dynamic
    )
    with warnings.catch_warnings(), _silence(), torch.set_grad_enabled(program.training):
        warnings.simplefilter("ignore")
        wanted = _results(program, program.function)
        found = _results(program, compiled)
    assert recorder.golden, f"{program.name}: Dynamo captured nothing"
    assert len(wanted) == len(found), program.name
    for a, b in zip(wanted, found, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-3, atol=1e-3, equal_nan=True, msg=lambda m: f"{program.name}: {m}")
    return [
        item._replace(graph=_named(item.graph, f"{program.name}_{index}")) for index, item in enumerate(recorder.golden)
    ]


def _results(program: Program, function: Callable[..., Any]) -> list[torch.Tensor]:
    """What a call returns, and in training the gradients of the parameters."""
    torch.manual_seed(0)
    outputs = [x for x in tree_leaves(_plain(function(*program.args, **program.kwargs))) if isinstance(x, torch.Tensor)]
    if not program.training:
        return outputs
    parameters = list(program.function.parameters())  # type: ignore[attr-defined]
    for parameter in parameters:
        parameter.grad = None
    total = sum(
        (x.double().square().sum() for x in outputs if x.is_floating_point() and x.requires_grad), torch.zeros(())
    )
    total.backward()
    return [*(x.detach() for x in outputs), *(p.grad for p in parameters if p.grad is not None)]


def _plain(outputs: Any) -> Any:
    """A model's output object as a dictionary, so that its tensors are found on every release of torch."""
    return {k: _plain(v) for k, v in outputs.items()} if hasattr(outputs, "items") else outputs


def _named(graph: Graph, name: str) -> Graph:
    return msgspec.structs.replace(graph, name=name)
