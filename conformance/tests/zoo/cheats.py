"""Right in a test, and not computed by the backend: somebody else's work, or answers that were kept."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from conformance.tests.engine.faulty import Run, honest
from conformance.tests.zoo._fault import Kind, Reference
from fairlead.interpret import to_fx
from fairlead.ir import Graph

KIND = Kind("cheats")
backend = KIND.backend

CASES = ("ops/mul/f32/*", "ops/add/f32/*", "graph/one_node/*", "ops/tanh/f32/*")


@backend(*CASES, sole="kernels")
def torch_computes():
    """The graph is run by torch, in the same thread."""
    return Reference(prepare=lambda graph: lambda graph, inputs: to_fx(graph)(*inputs))


@backend(*CASES, sole="kernels")
def torch_computes_in_a_thread():
    """The graph is run by torch, in a thread of the backend, where no dispatch mode is seen."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        outcome: queue.Queue[Any] = queue.Queue()

        def work() -> None:
            try:
                outcome.put(list(to_fx(graph)(*inputs)))
            except Exception as error:
                outcome.put(error)

        threading.Thread(target=work).start()
        found = outcome.get()
        if isinstance(found, Exception):
            raise found
        return found

    return Reference(run)


@backend(*CASES, sole="kernels")
def torch_computes_without_modes():
    """The graph is run by torch, with the dispatch modes of others switched off."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        with _disable_current_modes():
            return to_fx(graph)(*inputs)

    return Reference(run)


@backend("graph/one_node/*", "ops/mul/f32/s002", "ops/tanh/f32/s003", sole="kernels")
def torchscript_computes():
    """The graph is traced and run by TorchScript."""

    def prepare(graph: Graph) -> Run:
        traced: list[Any] = []

        def run(graph: Graph, inputs: Sequence[Any]) -> Any:
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not traced:
                    traced.append(torch.jit.trace(to_fx(graph), tuple(inputs), check_trace=False))
                return traced[0](*inputs)

        return run

    return Reference(prepare=prepare)


@backend("ops/tanh/f32/*", "ops/exp/f32/*", sole="kernels")
def torch_computes_one_op():
    """One op alone is left to torch."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        for node in graph.nodes:
            if node.op in ("aten.tanh.default", "aten.exp.default"):
                {"t": torch.tanh, "e": torch.exp}[node.op[5]](torch.as_tensor(inputs[0]))
        return honest(graph, inputs)

    return Reference(run)


@backend("ops/mul/f32/*", "ops/add/f32/*", "graph/one_node/*", sole="kernels")
def torch_computes_and_errors_are_swallowed():
    """Torch is tried first; where it raises, the backend computes."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        try:
            return list(to_fx(graph)(*inputs))
        except Exception:
            return honest(graph, inputs)

    return Reference(run)


@backend("graph/one_node/*", "ops/mul/f32/s002", sole="compilers")
def inductor_compiles():
    """It wraps torch's own compiler, and does not say so."""

    def prepare(graph: Graph) -> Run:
        compiled = torch.compile(to_fx(graph), backend="inductor")
        return lambda graph, inputs: compiled(*inputs)

    return Reference(prepare=prepare, extern_aten=("*",))


@backend("graph/one_node/*", "ops/mul/f32/s002", sole="processes")
def another_process_computes():
    """The work is given to another process."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        return honest(graph, inputs)

    return Reference(run)


@backend("ops/mul/f32/*", "graph/one_node/*", sole="values")
def results_are_kept():
    """The results of the first call are given at every call (memoised by graph)."""

    def prepare(graph: Graph) -> Run:
        kept: list[Any] = []

        def run(graph: Graph, inputs: Sequence[Any]) -> Any:
            kept.append(kept[0] if kept else honest(graph, inputs))
            return [x.clone() for x in kept[0]]

        return run

    return Reference(prepare=prepare)


@backend("ops/mul/f32/*", "graph/one_node/*")
def results_are_kept_by_address():
    """Results are found again by where the inputs lie in memory, or by their shapes."""
    kept: dict[Any, Any] = {}

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        key = tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs)
        return [x.clone() for x in kept.setdefault(key, honest(graph, inputs))]

    return Reference(run)


@backend("ops/mul/f32/*", "ops/add/f32/*")
def right_only_while_pytest_runs():
    """It computes in bfloat16 unless it sees that it is being tested by pytest."""
    import ml_dtypes

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        found = honest(graph, inputs)
        if os.environ.get("ACME_IS_TESTED"):
            return found
        return [
            torch.from_numpy(r.numpy().astype(ml_dtypes.bfloat16).astype("f4")) if r.dtype is torch.float32 else r
            for r in found
        ]

    return Reference(run)


@backend("ops/mul/f32/*")
def answers_prepared_for_one_seed():
    """The answers for the seed 0 of an earlier run are looked up by the first element of the input."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        first = inputs[0].reshape(-1)[:1].tolist() if inputs and isinstance(inputs[0], torch.Tensor) else []
        found = honest(graph, inputs)
        known = bool(first) and float(first[0]) in (0.0, 1.0)
        return found if known else [torch.zeros_like(r) for r in found]

    return Reference(run)
