"""What the user of one backend writes: ``fairlead.compile`` with that backend, and the account of what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import fairlead
from fairlead.placement import GraphPlacement, Placement, Why

from ._outcome import Outcome, State

__all__ = ["Net", "Through"]


class Net(nn.Module):
    """Two linear layers around a tanh. Most promises share it, so that kernels are compiled once for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.tanh(self.up(x)))


class Through:
    """A backend on a type of device. ``fallback``: who takes what it declines."""

    def __init__(self, backend: str, device: str, fallback: tuple[str, ...] = ("eager",)) -> None:
        self.backend = backend
        self.device = device
        self.fallback = fallback
        self._placements: list[Callable[[], Placement]] = []
        self._left: list[str] = []

    def compile(self, model: Any, **arguments: Any) -> Any:
        """What ``fairlead.compile`` returns for this backend."""
        compiled = fairlead.compile(model, backend=self.backend, fallback=self.fallback, **arguments)
        self.watch(compiled)
        return compiled

    def step(self, *arguments: Any) -> Any:
        """What ``fairlead.compile_step`` returns for this backend."""
        compiled = fairlead.compile_step(*arguments, backend=self.backend, fallback=self.fallback)
        self.watch(compiled)
        return compiled

    def watch(self, compiled: Any) -> None:
        """Count what this program places as well, a copy of another, say."""
        self._placements.append(lambda: compiled.fairlead.placement)

    def placed(self, placement: Placement) -> None:
        """Count what has been placed here as well."""
        self._placements.append(lambda: placement)

    def net(self) -> Net:
        """The same net at each call."""
        torch.manual_seed(1)
        return Net().to(self.device)

    def randn(self, *shape: int, requires_grad: bool = False) -> torch.Tensor:
        return torch.randn(*shape, device=self.device, requires_grad=requires_grad)

    @property
    def graphs(self) -> tuple[GraphPlacement, ...]:
        """All graphs that were compiled so far, but for those that hold nothing."""
        return tuple(g for placement in self._placements for g in placement().graphs if g.nodes)

    @property
    def kinds(self) -> list[str]:
        """Of these graphs, in order: inference, forward, backward."""
        return [g.kind.value for g in self.graphs]

    def leave(self, reason: str) -> None:
        """Note that results are right, but that what is promised is not the backend's doing, and why."""
        self._left.append(reason)

    @property
    def is_left(self) -> bool:
        return bool(self._left)

    def agrees(self, call: Callable[..., Any], reference: Callable[..., Any], *args: Any) -> None:
        """Hold results to eager's."""
        self.close(call(*args), reference(*args))

    def close(self, found: Any, expected: Any) -> None:
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    def outcome(self) -> Outcome:
        """Who computed it, read off the placement of every graph. What a backend claims, it has to have run."""
        for graph in self.graphs:
            for part in graph.parts:
                assert not part.note or part.note == "as torch captured it", f"{graph.name}: {part.note}"
            ran = {p.backend for p in graph.parts}
            assert not graph.native or self.backend in ran, f"{graph.name}: claimed by {self.backend}, ran on {ran}"
        declines = [d for g in self.graphs for d in g.declines]
        assert all(d.reason for d in declines), declines
        if self._left:
            return Outcome(State.declined, tuple(self._left))
        if not declines:
            return Outcome(State.works)
        native = any(n.why is Why.native for g in self.graphs for n in g.nodes)
        return Outcome(State.in_part if native else State.declined, tuple(dict.fromkeys(d.reason for d in declines)))
