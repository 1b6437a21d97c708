"""Memory that nobody else holds is let go of: within a call, by executables that empty their inputs, and after it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairlead
from fairlead._program import Program
from fairlead._verified import VerifiedProgram
from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support
from fairlead.errors import RunError
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Kind, Node
from fairlead.registry import registry


class Empties:
    """Runs all but error functions in torch, on lists that it empties, and then says so."""

    name = "empties"
    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(devices=("cpu",), dtypes=tuple(DType), training=True, dynamic_shapes=True)

    def __init__(self) -> None:
        self.on_run: Callable[[Kind, Sequence[weakref.ref[Tensor]]], None] = lambda kind, inputs: None
        self.on_begin: Callable[[Kind], None] = lambda kind: None
        self.steady_strides = False

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.no("an error function") if node.op == "aten.erf.default" else Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, Tensor], /) -> Any:
        return Executable(self, graph)


class Executable:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, backend: Empties, graph: Graph) -> None:
        self._backend = backend
        self._kind = graph.kind
        self.steady_strides = backend.steady_strides
        self._run = to_fx(graph).forward

    def __call__(self, inputs: list[Any], /) -> Sequence[Tensor]:
        self._backend.on_begin(self._kind)
        results: Sequence[Tensor] = self._run(*inputs)
        seen = [weakref.ref(x) for x in inputs]
        inputs.clear()
        self._backend.on_run(self._kind, seen)
        return results


@pytest.fixture(params=[False, True], ids=["", "steady"])
def backend(request: pytest.FixtureRequest) -> Iterator[Empties]:
    """With steady strides a program that is one Part is a call of its executable from the second call on."""
    torch._dynamo.reset()  # older releases count what was compiled of one function, whoever compiled it
    made = Empties()
    made.steady_strides = request.param
    registry.register(made)
    yield made
    registry.unregister("empties")


def program(x: Tensor) -> Tensor:
    return ((x.sin() + 1).exp() * 2).tanh()


def parts(x: Tensor) -> Tensor:
    return (x.sin() * 2).erf().exp()


def test_a_backward_lets_go_of_what_was_saved_from_the_second_call_on(backend: Empties) -> None:
    run = fairlead.compile(program, backend="empties", fallback=())
    alive: list[int] = []
    for _ in range(3):
        backend.on_run = lambda kind, inputs: (
            alive.append(sum(x() is not None for x in inputs)) if kind is Kind.backward else None
        )
        x = torch.randn(8, requires_grad=True)
        run(x).sum().backward()
        torch.testing.assert_close(x.grad, torch.autograd.grad(program(x).sum(), x)[0])
    assert alive[0] > 1
    assert max(alive[1:]) <= 1, "no more than the caller's own input"


def test_what_one_part_computes_for_the_next_is_let_go_of(backend: Empties) -> None:
    alive: list[int] = []
    run = fairlead.compile(parts, backend="empties")
    x = torch.randn(8)
    for _ in range(3):
        alive.clear()
        backend.on_run = lambda kind, inputs: alive.append(sum(x() is not None for x in inputs))
        torch.testing.assert_close(run(x), parts(x))
    assert alive == [1, 0], "the caller's own input, and the result of the Part between"


def test_what_an_executable_raises_that_has_let_go_of_its_inputs_is_shown(backend: Empties) -> None:
    run = fairlead.compile(program, backend="empties", fallback=("eager",))
    x = torch.randn(8, requires_grad=True)
    run(x).sum().backward()

    def fail(kind: Kind, inputs: Sequence[object]) -> None:
        if kind is Kind.backward:
            raise RuntimeError("broken halfway")

    backend.on_run = fail
    with pytest.raises(RunError, match="broken halfway") as caught:
        run(x).sum().backward()
    assert "no other backend runs it" in caught.value.next


@pytest.mark.parametrize("call", [1, 2])
def test_another_backend_takes_over_where_the_inputs_are_still_there(
    backend: Empties, call: int, caplog: pytest.LogCaptureFixture
) -> None:
    run = fairlead.compile(program, backend="empties", fallback=("eager",))
    x = torch.randn(8, requires_grad=True)
    for _ in range(call - 1):
        run(x).sum().backward()
    x.grad = None

    def fail(kind: Kind) -> None:
        if kind is Kind.backward:
            raise RuntimeError("broken at once")

    backend.on_begin = fail
    run(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(program(x).sum(), x)[0])
    assert "continuing with 'eager'" in caplog.text


def test_another_backend_takes_over_at_the_first_call_even_so(backend: Empties) -> None:
    run = fairlead.compile(program, backend="empties", fallback=("eager",))
    x = torch.randn(8, requires_grad=True)

    def fail(kind: Kind, inputs: Sequence[object]) -> None:
        raise RuntimeError("broken halfway")

    backend.on_run = fail
    run(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(program(x).sum(), x)[0])


def test_a_program_of_one_part_is_a_call_of_its_executable(backend: Empties, monkeypatch: pytest.MonkeyPatch) -> None:
    run, verified = (fairlead.compile(program, backend="empties", verify=v) for v in (None, "always"))
    x = torch.randn(8)
    runs: list[type[Program]] = []
    step = Program._run

    def counted(self: Program, *args: Any) -> None:
        runs.append(type(self))
        step(self, *args)

    monkeypatch.setattr(Program, "_run", counted)
    for _ in range(3):
        torch.testing.assert_close(run(x), program(x))
        torch.testing.assert_close(verified(x), program(x))
    assert runs.count(Program) == (1 if backend.steady_strides else 3)
    assert runs.count(VerifiedProgram) == 3


def several(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x, (x * y).t(), y.exp()


def test_inputs_among_the_outputs_and_strides_stay_what_they_are(backend: Empties) -> None:
    run = fairlead.compile(several, backend="empties", fallback=())
    for _ in range(3):
        x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
        found, wanted = run(x, y), several(x, y)
        assert found[0] is x
        for mine, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(mine, theirs)
            assert mine.stride() == theirs.stride()
        found[1].sum().backward()
        torch.testing.assert_close(x.grad, y)


@pytest.mark.parametrize("how", ["inference", "forward", "step"])
def test_no_program_keeps_the_inputs_of_its_first_call(how: str) -> None:
    program = fairlead.compile(nn.Linear(64, 64), backend="eager")
    x = torch.randn(8, 64)
    with torch.set_grad_enabled(how != "inference"):
        result = program(x)
    if how == "step":
        result.sum().backward()
    alive = [weakref.ref(x), weakref.ref(result)]
    del x, result
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert program(torch.randn(8, 64)).shape == (8, 64)
