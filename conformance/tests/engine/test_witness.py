"""Silent fallback is seen, whichever way it takes."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import _disable_current_modes

from fairlead.interpret import to_fx
from fairlead.ir import Builder, Graph

from .faulty import Faulty, Run, failure, honest, judged

CHILD = """
import pickle, sys
import torch
x, w = pickle.load(sys.stdin.buffer)
result = torch.relu(torch.from_numpy(x) @ torch.from_numpy(w)) * 2 + 1
sys.stdout.buffer.write(pickle.dumps(result.numpy()))
"""


def graph() -> Graph:
    """relu(x @ w) * 2 + 1, as in `CHILD`."""
    b = Builder("witnessed")
    x, w = b.input("f32[8, 8]", "x"), b.input("f32[8, 8]", "w")
    y = b.op("aten.relu.default", b.op("aten.mm.default", x, w))
    b.output(b.op("aten.add.Tensor", b.op("aten.mul.Tensor", y, 2.0), 1.0))
    return b.graph()


def same_thread(graph: Graph) -> Run:
    return lambda graph, inputs: to_fx(graph)(*inputs)


def worker_thread(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        outcome: queue.Queue[Any] = queue.Queue()

        def work() -> None:
            try:
                outcome.put(to_fx(graph)(*inputs))
            except Exception:
                outcome.put(honest(graph, inputs))

        threading.Thread(target=work).start()
        return outcome.get()

    return run


def torchscript(graph: Graph) -> Run:
    example = (torch.ones(8, 8), torch.ones(8, 8))
    traced = torch.jit.trace(to_fx(graph), example, check_trace=False)
    return lambda graph, inputs: traced(*inputs)


def modes_disabled(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        with _disable_current_modes():
            return to_fx(graph)(*inputs)

    return run


def one_op_only(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        torch.mm(*inputs)
        return honest(graph, inputs)

    return run


def by_another_name(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        x, w = inputs
        torch.nn.functional.linear(x, w.t())
        return honest(graph, inputs)

    return run


def into_given_memory(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        torch.mm(*inputs, out=torch.empty(8, 8))
        return honest(graph, inputs)

    return run


def swallowing_what_it_raises(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        try:
            return to_fx(graph)(*inputs)
        except Exception:
            return honest(graph, inputs)

    return run


@pytest.mark.parametrize(
    "way",
    [
        same_thread,
        worker_thread,
        torchscript,
        modes_disabled,
        one_op_only,
        by_another_name,
        into_given_memory,
        swallowing_what_it_raises,
    ],
)
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_torchs_kernels_are_seen(way: Callable[[Graph], Run]) -> None:
    assert failure(Faulty(prepare=way), graph()) == ("FAIL_FALLBACK", "kernels")


def test_the_honest_backend_passes_natively() -> None:
    seen = judged(Faulty(), graph())
    assert seen.extern == set()
    assert seen.native == {"aten.mm.default", "aten.relu.default", "aten.mul.Tensor", "aten.add.Tensor"}
    assert seen.compared == 2 * 64


def test_every_kernel_is_as_it_was_afterwards() -> None:
    assert failure(Faulty(prepare=same_thread), graph())[0] == "FAIL_FALLBACK"
    assert torch.equal(torch.mm(torch.eye(2), torch.ones(2, 2)), torch.ones(2, 2))
    assert torch.relu(torch.tensor([-1.0])).item() == 0


def test_borrowed_kernels_are_allowed_and_told() -> None:
    declared = Faulty(prepare=one_op_only, extern_aten=("aten.mm.default",))
    seen = judged(declared, graph())
    assert seen.extern == {"aten.mm"}
    assert "aten.mm.default" not in seen.native
    assert failure(Faulty(prepare=same_thread, extern_aten=("aten.mm.default",)), graph())[0] == "FAIL_FALLBACK"


def test_all_kernels_may_be_borrowed() -> None:
    seen = judged(Faulty(prepare=same_thread, extern_aten=("*",)), graph())
    assert {"aten.mm", "aten.mul", "aten.add"} <= seen.extern
    assert seen.native == set()


def wrapped_compiler(graph: Graph) -> Run:
    compiled = torch.compile(to_fx(graph), backend="inductor")
    return lambda graph, inputs: compiled(*inputs)


def taken_before_it_was_wired(graph: Graph) -> Run:
    from torch._inductor.compile_fx import compile_fx

    function = KEPT(to_fx(graph), [torch.ones(8, 8), torch.ones(8, 8)])
    assert compile_fx is not KEPT  # as it is while the tripwires are there
    return lambda graph, inputs: function(*inputs)


def _kept() -> Any:
    from torch._inductor.compile_fx import compile_fx

    return compile_fx


KEPT = _kept()


@pytest.mark.parametrize("way", [wrapped_compiler, taken_before_it_was_wired])
def test_torchs_compiler_trips(way: Callable[[Graph], Run]) -> None:
    torch._dynamo.reset()
    assert failure(Faulty(prepare=way, extern_aten=("*",)), graph()) == ("FAIL_FALLBACK", "compilers")


def test_a_backend_may_say_that_it_wraps_torchs_compiler() -> None:
    torch._dynamo.reset()
    declared = Faulty(prepare=wrapped_compiler, extern_aten=("*",), builds_on=("torch-inductor",))
    assert failure(declared, graph()) == ("", "")


def test_a_memoised_result_is_wrong_for_other_values() -> None:
    def memoising(graph: Graph) -> Run:
        kept: list[Any] = []

        def run(graph: Graph, inputs: Sequence[Any]) -> Any:
            kept.append(kept[0] if kept else honest(graph, inputs))
            return [x.clone() for x in kept[0]]

        return run

    assert failure(Faulty(prepare=memoising), graph()) == ("FAIL_MISMATCH", "values")


def another_process(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        given = pickle.dumps([x.numpy() for x in inputs])
        done = subprocess.run([sys.executable, "-c", CHILD], input=given, capture_output=True, check=True)
        return [torch.from_numpy(pickle.loads(done.stdout).copy())]

    return run


def forked(graph: Graph) -> Run:
    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        return honest(graph, inputs)

    return run


@pytest.mark.parametrize("way", [another_process, forked])
@pytest.mark.filterwarnings("ignore:This process")
def test_other_processes_are_heard_of(way: Callable[[Graph], Run]) -> None:
    assert failure(Faulty(prepare=way), graph()) == ("FAIL_FALLBACK", "processes")
