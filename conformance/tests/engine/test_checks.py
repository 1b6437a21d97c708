"""Each check of a graph finds what it is for, and nothing else."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from fairlead.backend import Level, Support
from fairlead.ir import Builder, DType, Graph, Role
from fairlead_conformance import Declined

from .faulty import Faulty, Run, failure, honest, judged


def two_outputs() -> Graph:
    b = Builder("two_outputs")
    x, y = b.input("f32[4, 4]", "x"), b.input("f32[4, 4]", "y")
    b.output(b.op("aten.sub.Tensor", x, y))
    b.output(b.op("aten.mul.Tensor", x, y))
    return b.graph()


def with_weights() -> Graph:
    b = Builder("with_weights")
    x, w = b.input("f32[3, 8]", "x"), b.input("f32[4, 8]", "w", Role.parameter)
    b.output(b.op("aten.linear.default", x, w, None))
    return b.graph()


def wrong(change: Callable[[list[Any], Sequence[Any]], Any]) -> Faulty:
    """A backend whose results are changed; ``change`` gets them and the inputs."""
    return Faulty(lambda graph, inputs: change(honest(graph, inputs), inputs))


def _raise(results: Any, inputs: Any) -> Any:
    raise NotImplementedError("no rule")


def _write(results: Any, inputs: Any) -> Any:
    inputs[0].numpy()[0, 0] += 1
    return results


CHANGES = {
    "runs": ("FAIL_RUN", _raise),
    "results": ("FAIL_SHAPE", lambda results, inputs: results[:1]),
    "shape": ("FAIL_SHAPE", lambda results, inputs: [results[0].reshape(16), results[1]]),
    "dtype": ("FAIL_DTYPE", lambda results, inputs: [torch.from_numpy(results[0].numpy().astype("f8")), results[1]]),
    "inputs": ("FAIL_MUTATION", _write),
    "aliases": ("FAIL_ALIAS", lambda results, inputs: [results[0], results[0].copy_(results[1])][::-1]),
    "values": ("FAIL_MISMATCH", lambda results, inputs: results[::-1]),
}


@pytest.mark.parametrize("check", CHANGES)
def test_a_wrong_result_is_found_by_the_check_for_it(check: str) -> None:
    status, change = CHANGES[check]
    assert failure(wrong(change), two_outputs()) == (status, check)


def test_a_result_that_is_an_input_is_an_alias() -> None:
    b = Builder("copy")
    x = b.input("f32[4]", "x")
    b.output(b.op("aten.abs.default", x))
    assert failure(Faulty(lambda graph, inputs: [inputs[0]]), b.graph(), [torch.ones(4)]) == ("FAIL_ALIAS", "aliases")


def _one_buffer(graph: Graph) -> Run:
    memory: list[torch.Tensor] = []

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        results = honest(graph, inputs)
        if not memory:
            memory.extend(r.clone() for r in results)
        return [m.copy_(r) for m, r in zip(memory, results, strict=True)]

    return run


def test_results_that_a_later_call_overwrites_are_found_unless_the_backend_says_so() -> None:
    assert failure(Faulty(prepare=_one_buffer), two_outputs()) == ("FAIL_ALIAS", "first-result-kept")
    assert failure(Faulty(prepare=_one_buffer, fresh_outputs=False), two_outputs()) == ("", "")


def counting() -> Graph:
    b = Builder("counting")
    count, x = b.input("f32[4]", "count", Role.buffer), b.input("f32[4]", "x")
    b.output(b.op("aten.add.Tensor", count, 1), Role.mutation, target=count)
    b.output(b.op("aten.mul.Tensor", count, x))
    return b.graph()


def _written(returned: bool, other: bool = False) -> Run:
    """What is to be written to the first input is written, and ``returned`` there; the ``other`` input is, too."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        results = honest(graph, inputs)
        inputs[0].numpy()[:] = results[0].numpy()
        if other:
            inputs[1].numpy()[:] = 0
        return [inputs[0] if returned else results[0], results[1]]

    return run


@pytest.mark.parametrize(
    ("run", "writes", "found"),
    [
        (_written(returned=True), True, ("", "")),
        (_written(returned=True), False, ("FAIL_MUTATION", "inputs")),
        (_written(returned=False), True, ("FAIL_MUTATION", "inputs")),
        (_written(returned=True, other=True), True, ("FAIL_MUTATION", "inputs")),
        (lambda graph, inputs: [inputs[0], honest(graph, inputs)[1]], True, ("FAIL_MISMATCH", "values")),
    ],
)
def test_only_a_backend_that_says_so_writes_inputs_and_only_those_that_it_returns(
    run: Run, writes: bool, found: tuple[str, str]
) -> None:
    inputs = [torch.arange(4.0), torch.arange(4.0) + 2]
    assert failure(Faulty(run, writes=writes), counting(), inputs) == found


def test_bits_that_change_from_call_to_call_are_found() -> None:
    count = iter(range(100))

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        factor = 1.0 + (next(count) % 2) * 2.0**-23
        return [torch.from_numpy(r.numpy() * factor).float() for r in honest(graph, inputs)]

    b = Builder("sum")
    b.output(b.op("aten.sum.dim_IntList", b.input("f32[8, 64]", "x"), [1]))
    assert failure(Faulty(run), b.graph()) == ("FAIL_NONDETERMINISM", "repeats")


STATES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "default dtype": (lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
    "threads": (lambda: torch.set_num_threads(1), lambda: torch.set_num_threads(2)),
    "environment (ACME_MODE)": (lambda: os.environ.update(ACME_MODE="1"), lambda: os.environ.pop("ACME_MODE")),
    "Python's random state": (random.random, lambda: None),
    "torch's random state": (lambda: torch.default_generator.manual_seed(3), lambda: None),
}


@pytest.mark.parametrize("what", STATES)
def test_a_change_of_the_process_is_found(what: str) -> None:
    change, back = STATES[what]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        change()
        return honest(graph, inputs)

    try:
        with pytest.raises(Exception, match=f"running changed: {what.partition('(')[0]}"):
            judged(Faulty(run), two_outputs())
    finally:
        back()
        torch.set_num_threads(threads)


def test_a_refusal_is_no_failure() -> None:
    declining = Faulty(declines={"aten.mul.Tensor": Support.no("no multiplier")})
    with pytest.raises(Declined) as refused:
        judged(declining, two_outputs())
    assert refused.value.reasons == {"aten.mul.Tensor": "no multiplier"}


def test_a_refusal_of_what_is_promised_is_one() -> None:
    def status(level: Level, ops: dict[str, tuple[str, ...]]) -> str:
        no = Support.no("no multiplier", level)
        return failure(Faulty(declines={"aten.mul.Tensor": no}, ops=ops), two_outputs())[0]

    assert status(Level.IMPOSSIBLE, {"aten.mul.Tensor": ()}) == "FAIL_OVERCLAIM"
    assert status(Level.PLANNED, {"aten.mul.Tensor": ("f32",)}) == "FAIL_OVERCLAIM"
    assert status(Level.PARTIAL, {"aten.mul.Tensor": ()}) == "DECLINED"
    assert status(Level.IMPOSSIBLE, {"aten.mul.Tensor": ("f64",)}) == "DECLINED"
    assert status(Level.IMPOSSIBLE, {"aten.sub.Tensor": ()}) == "DECLINED"


def test_a_verdict_that_is_raised_is_a_failure() -> None:
    class Raising(Faulty):
        def supports(self, node: Any, /) -> Support:
            raise KeyError(node.op)

    assert failure(Raising(), two_outputs()) == ("FAIL_COMPILE", "supports-never-raises")


def test_weights_may_be_held_and_changed() -> None:
    assert failure(Faulty(bakes_constants=True), with_weights()) == ("", "")
    assert failure(Faulty(bakes_constants=True, refits=True), with_weights()) == ("", "")


def test_stale_weights_are_found() -> None:
    class Stale(Faulty):
        def compile(self, graph: Graph, options: Any, constants: Any, /) -> Any:
            made = super().compile(graph, options, {i: t.clone() for i, t in constants.items()})
            if made.baked:
                made.refit = lambda constants: None
            return made

    assert failure(Stale(bakes_constants=True), with_weights()) == ("FAIL_MISMATCH", "refitted")


def test_weights_that_are_kept_from_an_earlier_graph_are_found() -> None:
    kept: list[Any] = []

    class Caching(Faulty):
        def compile(self, graph: Graph, options: Any, constants: Any, /) -> Any:
            kept.append(constants)
            return super().compile(graph, options, kept[-2] if constants and len(kept) > 2 else constants)

    assert failure(Caching(bakes_constants=True), with_weights()) == ("FAIL_MISMATCH", "recompiled")


def test_random_numbers_are_judged_by_their_distribution() -> None:
    b = Builder("random")
    b.output(b.op("aten.rand.default", [64, 64], dtype=DType.f32, to="f32[64, 64]"))
    graph = b.graph()

    def drawn(scale: float, shift: float) -> Run:
        return lambda graph, inputs: [torch.rand(64, 64) * scale + shift]

    assert failure(Faulty(drawn(1, 0), rng=True, extern_aten=("*",)), graph) == ("", "")
    assert failure(Faulty(drawn(0.9, 0), rng=True, extern_aten=("*",)), graph) == ("FAIL_MISMATCH", "values")
    fixed = torch.rand(64, 64)
    assert failure(Faulty(lambda graph, inputs: [fixed.clone()], rng=True), graph) == ("FAIL_RNG", "generator")
