"""One case that runs programs: where its inputs come from, what it compiled, and what its verdict is."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import torch

from fairlead.backend import Capabilities
from fairlead_conformance._case import Case
from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._programs._placed import judge
from fairlead_conformance._programs._twin import Twin
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["Trial"]


class Trial:
    """What a check is given: salted inputs, modules with fixed weights, and `compile`; all on the subject's device.

    Used as a context: on leaving it without an error, the placement of everything that was compiled is judged.
    """

    def __init__(self, case: Case, subject: Subject, seen: Observation) -> None:
        self.case = case
        self.subject = subject
        self.seen = seen
        self.salt = zlib.crc32(f"{subject.seed}:{case.id}".encode())
        self._values = torch.Generator().manual_seed(self.salt)
        self._twins: list[Twin] = []
        self._stack = contextlib.ExitStack()

    @property
    def capabilities(self) -> Capabilities:
        return self.subject.capabilities

    @property
    def device(self) -> str:
        """Where tensors of the check are."""
        return self.subject.place

    def compile(self, program: Callable[..., Any], **how: Any) -> Twin:
        """The program compiled by the backend, beside itself in eager; keywords are those of `Twin`."""
        twin = Twin(program, self.subject, self.seen, **{"salt": self.salt, **how})
        self._twins.append(twin)
        return twin

    def made(self, kind: Callable[..., torch.nn.Module], *args: Any, **named: Any) -> torch.nn.Module:
        """A module in evaluation mode whose weights are the same in every run."""
        torch.manual_seed(20_240_229)
        module: torch.nn.Module = kind(*args, **named).eval()
        return module.to(self.device)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Fresh values of a normal distribution, others at each call and for each seed."""
        return torch.randn(shape, generator=self._values).to(self.device, dtype)

    def integers(self, below: int, *shape: int) -> torch.Tensor:
        """Fresh 64-bit integers from zero on."""
        return torch.randint(below, shape, generator=self._values).to(self.device)

    def ones(self, *shape: int) -> torch.Tensor:
        return torch.ones(shape, device=self.device)

    def tensor(self, items: Any) -> torch.Tensor:
        """These very numbers."""
        return torch.tensor(items, device=self.device)

    def require(self, holds: bool, status: Status, check: str, detail: str) -> None:
        """Raise `Failed` unless the claim holds."""
        self.seen.compared += 1
        if not holds:
            raise Failed(status, check, detail)

    def __enter__(self) -> Self:
        devices = [] if self.device == "cpu" else [torch.device(self.device)]
        self._stack.enter_context(torch.random.fork_rng(devices))
        torch._dynamo.reset()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._stack:
            if error is None:
                for twin in self._twins:
                    twin.check_kept()
                judge([twin.placement for twin in self._twins], self.subject.name, self.seen)
