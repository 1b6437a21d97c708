"""Each pass, over the graphs of real models, keeps the numbers, and has nothing left to do the second time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import architectures
import pytest
import torch
from torch.utils._pytree import tree_leaves

from fairlead._capture import Captured, capture
from fairlead.interpret import run, to_fx
from fairlead.ir import Graph, fingerprint, verify
from fairlead.ir.infer import verify_types
from fairlead.passes import (
    DECOMPOSABLE,
    canonicalize,
    decompose,
    draws_random_numbers,
    eliminate_common_subexpressions,
    fold_constants,
    recognize_composites,
    remove_dead_nodes,
    split_dropout,
)

MODELS = ["gpt2", "swin", "resnet", "mixtral"]


class Ran(NamedTuple):
    """A graph as it was captured, and what it was given."""

    graph: Graph
    inputs: list[Any]


class Recorder:
    """Keeps the graphs of a program with the inputs of their calls."""

    def __init__(self) -> None:
        self.ran: list[Ran] = []

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        function = to_fx(captured.graph).forward

        def call(args: list[Any]) -> Any:
            given = [*args, *captured.constants.values()]
            args.clear()
            self.ran.append(Ran(captured.graph, [x.clone() if isinstance(x, torch.Tensor) else x for x in given]))
            return list(function(*given))

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def uncapturable(self, gm: Any, kind: Any, reason: str) -> Any:
        raise AssertionError(reason)


@pytest.fixture(scope="module", params=MODELS)
def graphs(request: pytest.FixtureRequest) -> Iterator[list[Ran]]:
    torch._dynamo.reset()
    recorder = Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers and of torch, about the models
        model, inputs = architectures.build(request.param, dropout=True)
        compiled = torch.compile(model.train(), backend=lambda gm, given: capture(gm, given, recorder), dynamic=False)
        out = compiled(**inputs)
        loss = next(x for x in tree_leaves(list(out.values())) if isinstance(x, torch.Tensor))
        (loss * torch.arange(loss.numel()).view(loss.shape)).sum().backward()
    assert len(recorder.ran) == 2
    yield recorder.ran
    torch._dynamo.reset()


PASSES: dict[str, Callable[[Graph], Graph]] = {
    "canonicalize": canonicalize,
    "recognize composites": recognize_composites,
    "remove dead nodes": remove_dead_nodes,
    "eliminate common subexpressions": eliminate_common_subexpressions,
    "fold constants": fold_constants,
    "split dropout": split_dropout,
}

FROM_CANONICAL = {"recognize composites", "eliminate common subexpressions", "fold constants"}
"""The passes that take canonical graphs."""

PREPARED: dict[str, Callable[[Graph], Graph]] = {
    name: (lambda g, rewrite=rewrite: rewrite(canonicalize(g))) if name in FROM_CANONICAL else rewrite
    for name, rewrite in PASSES.items()
}

EXACT = {"remove dead nodes", "eliminate common subexpressions", "fold constants", "split dropout"}
"""What changes no bit. The others change layouts and merge products with sums, and kernels then sum in other orders."""


def results(graph: Graph, inputs: list[Any]) -> tuple[Any, ...]:
    torch.manual_seed(0)
    return run(verify(graph), inputs)


def near(found: Any, wanted: Any) -> bool:
    """Whether two results agree but for rounding: a small share of the largest element, which is about one or more."""
    if not isinstance(wanted, torch.Tensor) or not wanted.is_floating_point():
        return bool(torch.equal(found, wanted)) if isinstance(wanted, torch.Tensor) else bool(found == wanted)
    finite = wanted.isfinite()
    if not torch.equal(found.where(~finite, 0), wanted.where(~finite, 0)):
        return False
    largest = max([1.0, *wanted[finite].abs().flatten().tolist()])
    return all(x <= 1e-5 * largest for x in (found - wanted)[finite].abs().flatten().tolist())


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_keeps_the_numbers_and_is_done_after_one_turn(name: str, graphs: list[Ran]) -> None:
    for graph, inputs in graphs:
        after = PREPARED[name](graph)
        assert fingerprint(PASSES[name](after)) == fingerprint(after)
        before = graph if PREPARED[name] is PASSES[name] else canonicalize(graph)
        for wanted, found in zip(results(before, inputs), results(after, inputs), strict=True):
            if name in EXACT:
                torch.testing.assert_close(found, wanted, equal_nan=True, rtol=0, atol=0)
            else:
                assert near(found, wanted)


def test_decomposed_graphs_have_no_composite_and_close_numbers(graphs: list[Ran]) -> None:
    for graph, inputs in graphs:
        canonical = recognize_composites(canonicalize(graph))
        base = verify_types(decompose(canonical, ()))
        assert not DECOMPOSABLE & {n.op for n in base.nodes}
        assert decompose(base, ()) == base
        for wanted, found in zip(results(canonical, inputs), results(base, inputs), strict=True):
            assert near(found, wanted)


def test_passes_after_each_other_leave_each_other_nothing_to_do(graphs: list[Ran]) -> None:
    """The order of the pipeline: what folding makes equal, common subexpressions find, and not the other way round."""
    for graph, _ in graphs:
        done = eliminate_common_subexpressions(fold_constants(decompose(canonicalize(graph), ())))
        assert fold_constants(done) == done
        assert remove_dead_nodes(done) == done
        assert [n for n in done.nodes if draws_random_numbers(n.op)] == [
            n for n in canonicalize(graph).nodes if draws_random_numbers(n.op)
        ]
