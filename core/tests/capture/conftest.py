"""Graphs as they are captured from programs, before any pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from fairlead._capture import Captured, capture
from fairlead.interpret import to_fx
from fairlead.ir import Graph, Kind, verify


class Recorder:
    """Takes the graphs of a program, keeps them, and runs them as the interpreter has it."""

    def __init__(self) -> None:
        self.captured: list[Captured] = []
        self.reasons: list[str] = []

    @property
    def graphs(self) -> list[Graph]:
        return [c.graph for c in self.captured]

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        verify(captured.graph)
        self.captured.append(captured)
        run = to_fx(captured.graph).forward
        return boxed(lambda args: list(run(*args, *captured.constants.values())))

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        self.reasons.append(reason)
        return boxed(lambda args: gm.forward(*args))


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """As AOTAutograd wants it: the callee empties the list of arguments."""

    def call(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return run(given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


class Program:
    """A compiled function, and what was captured of it."""

    def __init__(self, function: Callable[..., Any], dynamic: bool | None, recompute: bool) -> None:
        self.recorder = Recorder()
        self._compiled = torch.compile(
            function,
            backend=lambda gm, inputs: capture(gm, inputs, self.recorder, recompute=recompute),
            dynamic=dynamic,
            fullgraph=True,
        )

    def __call__(self, *args: Any) -> Any:
        return self._compiled(*args)

    @property
    def graphs(self) -> list[Graph]:
        return self.recorder.graphs

    @property
    def graph(self) -> Graph:
        """The only graph."""
        (graph,) = self.graphs
        return graph

    @property
    def reason(self) -> str:
        """Why the only graph is none."""
        assert not self.graphs
        (reason,) = self.recorder.reasons
        return reason


Compile = Callable[..., Program]


@pytest.fixture
def program() -> Iterator[Compile]:
    """Compile a function or a module, to be captured when it is called.

    ``dynamic`` is as for ``torch.compile``, ``recompute`` as for `capture`.
    """
    torch._dynamo.reset()
    yield lambda function, dynamic=None, recompute=False: Program(function, dynamic, recompute)
    torch._dynamo.reset()
