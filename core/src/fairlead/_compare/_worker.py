"""The process that measures one row: ``python -m fairlead._compare._worker``, requests in, replies out.

A row has a process of its own, so that a crash or a hang costs that row only, and that memory and processor time are
its own.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch

from fairlead._accuracy import Findings, Tensors
from fairlead._compare._data import Accuracy, FirstCall, Status
from fairlead._compare._messages import (
    First,
    Load,
    Loaded,
    Measured,
    Refer,
    Referred,
    Reply,
    Request,
    Timed,
    Turn,
    Verified,
    Verify,
)
from fairlead._compare._reference import State, example, read_case, with_dynamic, write_cases
from fairlead._compare._served import serve
from fairlead._compare._step import Call, results, run, step
from fairlead._compare._subjects import compiled, graphs, placement
from fairlead._compare._usage import MemoryMark, cpu_seconds
from fairlead._models._load import load, with_dtype

MIB = 2**20


class Worker:
    """A model and what runs it, from loading to timing."""

    def __init__(self, request: Load) -> None:
        self._request = request
        self._folder = Path(request.folder)
        self._state = State(self._folder)
        if request.threads:
            torch.set_num_threads(request.threads)
        model = load(request.spec, training=request.training)
        if request.dtype is not None:
            model = with_dtype(model, request.dtype)
        if self._state.exists:
            model = self._state.adopt(model)
        else:
            self._state.save(model)
        self._model = with_dynamic(model) if request.dynamic else model
        self._inputs = example(self._model, request.dynamic)
        self._call: Call = self._model.module
        self._graphs = 0

    def loaded(self) -> Loaded:
        weights = [*self._model.module.parameters(), *self._model.module.buffers()]
        return Loaded(
            sum(tensor.nbytes for tensor in weights) / MIB,
            {
                name: f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
                for name, tensor in self._inputs.items()
            },
        )

    def first(self) -> Measured:
        if self._request.dynamic:
            self._mark_dynamic()
        mark = MemoryMark()
        wall, cpu = time.perf_counter(), cpu_seconds()
        self._call = compiled(
            self._request.subject,
            self._model,
            fallback=self._request.fallback,
            share_weights=self._request.share_weights,
        )
        run(self._model, self._call, self._inputs, self._request.training)
        first = FirstCall(time.perf_counter() - wall, cpu_seconds() - cpu)
        self._graphs = graphs()
        return Measured(first, mark.since())

    def _mark_dynamic(self) -> None:
        from torch._dynamo import mark_dynamic

        for name, dims in self._model.dynamic.items():
            for dim in dims:
                mark_dynamic(self._inputs[name], dim)

    def refer(self) -> Referred:
        request = self._request
        labels = write_cases(self._model, self._state, self._folder, training=request.training, dynamic=request.dynamic)
        return Referred(labels)

    def verify(self, request: Verify) -> Verified:
        findings = Findings()
        kept: list[tuple[Tensors, Tensors]] = []
        for index, label in enumerate(request.cases):
            case = read_case(self._folder, index)
            self._state.restore(self._model)
            got = results(self._model, self._call, case.inputs, self._request.training)
            kept.append((got, {name: tensor.detach().clone() for name, tensor in got.items()}))
            findings.add(label, case, got)
        self._check_kept(kept, findings)
        accuracy = Accuracy(
            findings.error, findings.eager, findings.worst, findings.tensors, tuple(findings.cases), findings.exact
        )
        where = placement(self._request.subject, self._call, self._graphs)
        if findings.problems:
            return Verified(Status.wrong, "; ".join(findings.problems), accuracy, where)
        return Verified(Status.ok, "", accuracy, where)

    def _check_kept(self, kept: list[tuple[Tensors, Tensors]], findings: Findings) -> None:
        for got, copy in kept:
            for name, tensor in got.items():
                if not torch.equal(torch.nan_to_num(tensor.detach()), torch.nan_to_num(copy[name])):
                    findings.problems.append(f"a later call overwrote the {name} that an earlier one returned")
                    return

    def turn(self, request: Turn) -> Timed:
        training = self._request.training
        timed = step(self._model, self._call, self._inputs, training)
        seconds: list[float] = []
        cpu = 0.0
        with torch.set_grad_enabled(training):
            timed()  # The other rows have had the caches of the processor since the last turn.
            end = time.perf_counter() + request.seconds
            while len(seconds) < request.calls or time.perf_counter() < end:
                if training:
                    self._update()
                started, start = time.process_time(), time.perf_counter()
                timed()
                seconds.append(time.perf_counter() - start)
                cpu += time.process_time() - started
        return Timed(tuple(seconds), cpu)

    def _update(self) -> None:
        """Write the weights, as an optimizer does between two steps; the values stay as they are.

        What a backend does with weights ahead of a call is then done at each step, and is part of its time.
        """
        with torch.no_grad():
            for parameter in self._model.module.parameters():
                parameter.mul_(1.0)

    def answer(self, request: Request) -> Reply:
        match request:
            case First():
                return self.first()
            case Refer():
                return self.refer()
            case Verify():
                return self.verify(request)
            case Turn():
                return self.turn(request)
            case Load():
                return self.loaded()


def main() -> None:
    """Answer requests; the first one says what to measure."""
    worker: Worker | None = None

    def answer(request: Request) -> Reply:
        nonlocal worker
        if worker is None:
            assert isinstance(request, Load)
            worker = Worker(request)
        return worker.answer(request)

    serve(Request, answer)


if __name__ == "__main__":
    main()
