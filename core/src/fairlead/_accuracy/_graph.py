"""What a graph ought to give: torch op by op, the same in float64, and with inputs moved by a rounding."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from fairlead._accuracy._float64 import Widened, moved, wide
from fairlead._accuracy._rule import FLOOR, GRADIENT, Case, Findings, Tensors, bar
from fairlead.interpret import to_fx
from fairlead.ir import Graph, Kind, Value
from fairlead.passes import draws

__all__ = ["Reference", "Verdict", "named"]

SHAKES = 2
"""How often inputs are moved by one rounding: what that makes of a result is anyone's due."""

WIDE_SHAKES = 16
"""How often they are moved by as much as is right in any case: an index that then changes is not decided by them."""


class Verdict(NamedTuple):
    """The outputs that are wrong, by index, and what is wrong with the first of them; empty where all are right."""

    outputs: tuple[int, ...]
    problem: str


class Reference:
    """A graph that torch runs op by op on these inputs, and what its results have to be to be right.

    Random numbers are drawn when the object is made; the runs in float64 and on moved inputs, which are made where
    they are asked for, have the same. ``results`` has one entry for each output.

    ``floor`` is an error that is right in any case, where less than the types' precision is accepted.

    A run in float64 reads ``inputs`` when it is asked for: nothing may have written to them by then.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Any], floor: float = 0.0) -> None:
        self._graph = graph
        self.inputs = tuple(inputs)
        self._floor = floor
        self._module = to_fx(graph)
        self._drawn: dict[torch.fx.Node, Any] | None = {} if any(map(draws, graph.nodes)) else None
        self.results = self._run(self.inputs)

    @functools.cached_property
    def exact(self) -> list[Any] | None:
        """The results in float64, or None for a graph that insists on another type."""
        with contextlib.suppress(Exception), Widened():
            return self._run([wide(x) for x in self.inputs], widened=True)
        return None

    def shaken(self, beside: Tensors) -> dict[str, float]:
        """How far each output moves from what is given here when the inputs are moved by one rounding."""
        generator = torch.Generator().manual_seed(0)
        furthest: dict[str, float] = {}
        for _ in range(SHAKES):
            for name, tensor in named(self._graph, self._moved(generator)).items():
                if tensor.is_floating_point() and tensor.numel():
                    distance = (tensor.double() - beside[name].double()).abs().nan_to_num(posinf=0.0).max()
                    furthest[name] = max(furthest.get(name, 0.0), float(distance))
        return furthest

    @functools.cached_property
    def case(self) -> Case:
        """What is right, with all that it takes to say so; outputs are called what they are to the program."""
        eager, exact = self._named
        return self._case(eager, exact, self.shaken(exact or eager))

    def judge(self, results: Sequence[torch.Tensor]) -> Verdict:
        """Compare the tensors that something else gave, one for each output that is a tensor, with what is right."""
        eager, exact = self._named
        if len(results) != len(eager):
            return Verdict((), f"{len(results)} results where the graph has {len(eager)} outputs")
        # another process, which had the device, hands its results over on the CPU
        results = [r.to(e.device) for r, e in zip(results, eager.values(), strict=True)]
        if not self._verdict(self._case(eager, exact, {}), results).outputs:
            return Verdict((), "")  # right whatever inputs moved by a rounding would give
        return self._verdict(self.case, self._settled(results))

    def limits(self) -> tuple[float, ...]:
        """How far from eager's each output has to be at least to be wrong."""
        found = []
        for name, eager in self.case.eager.items():
            exact = (self.case.exact or self.case.eager)[name]
            real = eager.is_floating_point() or eager.is_complex()
            scale, own, allowed = bar(eager, exact, self.case.shaken.get(name, 0.0)) if real else (0.0, 0.0, 0.0)
            found.append(max(allowed - own, 0.0) * scale)
        return tuple(found)

    @functools.cached_property
    def _named(self) -> tuple[Tensors, Tensors | None]:
        exact = named(self._graph, self.exact) if self.exact is not None else None
        return named(self._graph, self.results), exact

    def _settled(self, results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results, with eager's elements where those that are not floating point hang on a rounding.

        A comparison and an index of the largest are steps: of inputs that are right, either side may come.
        """
        eager = list(self._named[0].values())
        steps = [i for i, x in enumerate(eager) if _is_step(x, results[i])]
        if not steps or not any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in self.inputs):
            return list(results)
        settled = list(results)
        generator = torch.Generator().manual_seed(0)
        for _ in range(WIDE_SHAKES):
            others = list(named(self._graph, self._moved(generator, widely=True)).values())
            for i in steps:
                settled[i] = torch.where(others[i] != eager[i], eager[i], settled[i])
        return settled

    def _moved(self, generator: torch.Generator, *, widely: bool = False) -> list[Any]:
        """A run on inputs that are moved by a rounding, or by as much as an error may be in any case."""
        return self._run(
            [
                moved(x, generator, self._least(x.dtype) if widely else None) if isinstance(x, torch.Tensor) else x
                for x in self.inputs
            ]
        )

    def _least(self, dtype: torch.dtype) -> float:
        return max(FLOOR.get(dtype, 0.0), self._floor)

    def _verdict(self, case: Case, results: Sequence[torch.Tensor]) -> Verdict:
        findings = Findings(self._floor)
        findings.add("", case, dict(zip(case.eager, results, strict=True)), is_counted=False)
        told = {i: p for i, name in enumerate(case.eager) for p in findings.problems if name in p}
        wrong = tuple(sorted(told))
        return Verdict(wrong, told[wrong[0]].removeprefix(": ") if wrong else "")

    def _run(self, inputs: Sequence[Any], *, widened: bool = False) -> list[Any]:
        with torch.no_grad():
            if self._drawn is None:
                return list(self._module(*inputs))
            return list(_Repeating(self._module, self._drawn, widened=widened).run(*inputs))

    def _case(self, eager: Tensors, exact: Tensors | None, shaken: dict[str, float]) -> Case:
        if self._graph.kind is not Kind.backward:
            return Case({}, eager, exact, shaken)
        return Case({}, _gradients(eager), _gradients(exact) if exact else None, _gradients(shaken))


def named(graph: Graph, results: Sequence[object]) -> Tensors:
    """The tensors among the results, by what they are to the program."""
    found: Tensors = {}
    for index, (output, result) in enumerate(zip(graph.outputs, results, strict=True)):
        if isinstance(output.value, Value) and isinstance(result, torch.Tensor):
            of = f" of {graph.inputs[output.target].name}" if output.target is not None else ""
            found[f"output {index} ({output.role}{of})"] = result
    return found


def _gradients(found: dict[str, Any]) -> dict[str, Any]:
    return {f"{GRADIENT}{name}": x for name, x in found.items()}


def _is_step(eager: torch.Tensor, got: torch.Tensor) -> bool:
    real = eager.is_floating_point() or eager.is_complex()
    return not real and eager.dtype == got.dtype and eager.shape == got.shape and not torch.equal(eager, got)


class _Repeating(torch.fx.Interpreter):
    """Runs a module of `to_fx`. What is ``drawn`` by node is not drawn again, and what is not yet is put there."""

    def __init__(self, module: torch.fx.GraphModule, drawn: dict[torch.fx.Node, Any], *, widened: bool) -> None:
        super().__init__(module)
        self._drawn = drawn
        self._widened = widened

    def run_node(self, n: torch.fx.Node) -> Any:
        node = n.meta.get("node")
        if node is None or not draws(node):
            return super().run_node(n)
        if n not in self._drawn:
            self._drawn[n] = super().run_node(n)
            return self._drawn[n]
        drawn = self._drawn[n]
        if self._widened:
            drawn = tuple(map(wide, drawn)) if isinstance(drawn, tuple) else wide(drawn)
        args, _ = self.fetch_args_kwargs_from_env(n)
        return _again(node.op, args, drawn)


def _again(op: str, args: Sequence[Any], drawn: Any) -> Any:
    """What a node gives that has drawn these numbers; the product of an op that draws a factor is made anew."""
    match op:
        case "aten.native_dropout.default" if args[2] is not False:
            (x, p, _), mask = args, drawn[1]
            return x * mask * (0.0 if p == 1 else 1 / (1 - p)), mask
        case "aten.rrelu_with_noise_functional.default" if args[4]:
            return args[0] * drawn[1], drawn[1]
    return drawn
