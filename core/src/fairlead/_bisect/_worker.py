"""The process that runs a backend: ``python -m fairlead._bisect._worker``. Whatever becomes of it is a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from fairlead import _options, ir
from fairlead._bisect._messages import Attempt, Attempted, Load, Loaded, Request
from fairlead._compare._served import serve
from fairlead._registry import registry
from fairlead.backend import Backend, Options


class Worker:
    """A backend and its options."""

    def __init__(self, request: Load) -> None:
        self._backend: Backend[Any] = registry.ready(request.backend)
        self._options: Options = _options.parse(self._backend, request.options)

    def attempt(self, request: Attempt) -> Attempted:
        """Compile, run once, and keep the results: what a Part of a program comes to."""
        graph = ir.read(Path(request.graph)).graph
        inputs = torch.load(request.inputs, weights_only=True)
        with torch.no_grad():
            executable = self._backend.compile(graph, self._options, {i: inputs[i] for i in request.constants})
            results = executable([x for i, x in enumerate(inputs) if i not in executable.baked])
        tensors = [r if isinstance(r, torch.Tensor) else from_dlpack(r) for r in results]
        torch.save([t.detach().cpu() for t in tensors], request.results)
        return Attempted()


def main() -> None:
    """Answer requests; the first one names the backend."""
    worker: Worker | None = None

    def answer(request: Request) -> Loaded | Attempted:
        nonlocal worker
        if isinstance(request, Load):
            worker = Worker(request)
            return Loaded()
        assert worker is not None
        return worker.attempt(request)

    serve(Request, answer)


if __name__ == "__main__":
    main()
