"""What is compiled must not be taken for something else that was compiled before, here or by another backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

import fairlead
from fairlead.interpret import torch_dtype
from fairlead.ir import Builder, Graph, TensorType
from fairlead_conformance._case import Level
from fairlead_conformance._families.lifecycle._question import Question, asked, question
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._observation import Declined, Observation
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

_REFERENCE = "eager"
"""The backend that is part of core, beside which another runs in one process."""


def _unary(op: str, *rest: object, of: str = "f32[3, 4]") -> Graph:
    b = Builder("main")
    b.output(b.op(op, b.input(of, "x"), *rest))  # type: ignore[arg-type]
    return b.graph()


def _product(left: str, right: str) -> Graph:
    b = Builder("main")
    b.output(b.op("aten.mul.Tensor", b.input(left, "x"), b.input(right, "y")))
    return b.graph()


def _scaled(alpha: float) -> Graph:
    b = Builder("main")
    b.output(b.op("aten.add.Tensor", b.input("f32[3, 4]", "x"), b.input("f32[3, 4]", "y"), alpha=alpha))
    return b.graph()


def _exchanged(*, turned: bool) -> Graph:
    b = Builder("main")
    x, y = b.input("f32[3, 4]", "x"), b.input("f32[3, 4]", "y")
    b.output(b.op("aten.sub.Tensor", *((y, x) if turned else (x, y))))
    return b.graph()


def _outputs(*, turned: bool) -> Graph:
    b = Builder("main")
    x = b.input("f32[3, 4]", "x")
    results = [b.op("aten.relu.default", x), b.op("aten.neg.default", x)]
    for value in reversed(results) if turned else results:
        b.output(value)
    return b.graph()


def _one_after_another(graphs: Sequence[Graph], subject: Subject, seen: Observation) -> None:
    """Each graph is right, also after the others were compiled."""
    declined: dict[str, str] = {}
    for index, graph in enumerate((*graphs, *graphs)):
        generator = torch.Generator().manual_seed(subject.seed + index)
        try:
            check_graph(graph, [_filled(item.value.tensor, generator) for item in graph.inputs], subject, seen)
        except Declined as refusal:
            declined |= refusal.reasons
    if declined:
        raise Declined(declined)


def _filled(type_: TensorType, generator: torch.Generator) -> torch.Tensor:
    shape = [n if isinstance(n, int) else 3 for n in type_.shape]
    return (torch.randn(shape, generator=generator) * 8).to(torch_dtype(type_.dtype))


def _poisoning(name: str, graphs: Callable[[], Sequence[Graph]]) -> Question:
    def body(subject: Subject, seen: Observation) -> None:
        _one_after_another(graphs(), subject, seen)

    body.__name__ = name
    return Question(body, Level.L1, 0.5)


another_constant = _poisoning("the_same_with_another_constant", lambda: [_scaled(alpha) for alpha in (1, 2, 0.5)])
another_dtype = _poisoning(
    "the_same_with_another_dtype", lambda: [_product(f"{d}[3, 4]", f"{d}[3, 4]") for d in ("f32", "i64", "f64")]
)
another_flag = _poisoning(
    "the_same_with_another_flag", lambda: [_unary("aten.sum.dim_IntList", [1], keep) for keep in (False, True)]
)
another_dimension = _poisoning(
    "the_same_with_another_dimension", lambda: [_unary("aten.sum.dim_IntList", [axis], True) for axis in (0, 1)]
)
another_shape = _poisoning(
    "the_same_with_another_shape", lambda: [_product(s, s) for s in ("f32[3, 4]", "f32[4, 3]", "f32[12]", "f32[0, 4]")]
)
another_broadcast = _poisoning(
    "the_same_with_another_broadcast",
    lambda: [_product("f32[4, 4]", s) for s in ("f32[4, 4]", "f32[4]", "f32[4, 1]", "f32[]")],
)
another_order = _poisoning("the_same_with_inputs_exchanged", lambda: [_exchanged(turned=t) for t in (False, True)])
another_result = _poisoning("the_same_with_results_exchanged", lambda: [_outputs(turned=t) for t in (False, True)])
another_permutation = _poisoning(
    "the_same_with_another_permutation",
    lambda: [_unary("aten.permute.default", p, of="f32[3, 3, 3]") for p in ([0, 2, 1], [1, 0, 2], [2, 0, 1])],
)


@question(Level.L1, cost=1)
def two_backends_in_one_process(subject: Subject, seen: Observation) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return (x * 2 + 1).relu()

    torch._dynamo.reset()
    generator = torch.Generator().manual_seed(subject.seed)
    names = (subject.name, _REFERENCE)
    programs = [fairlead.compile(program, backend=name, fallback=(_REFERENCE,)) for name in names]
    for _ in range(3):
        x = torch.randn(4, generator=generator).to(subject.place)
        with torch.no_grad():
            for name, compiled in zip(names, programs, strict=True):
                same = torch.allclose(compiled(x), program(x))
                asked(same, seen, Status.FAIL_MISMATCH, "two-backends", f"{name} is wrong beside the other backend")
