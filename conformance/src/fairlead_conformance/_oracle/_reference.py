"""What a graph gives for inputs: eager's results, the exact ones, and how far off each element may be."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fairlead.errors import FairleadError
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Value
from fairlead.passes import DECOMPOSABLE, decompose
from fairlead_conformance._device import device_of, home, lost, placed
from fairlead_conformance._device_names import kind_of
from fairlead_conformance._inputs import copies
from fairlead_conformance._observation import Declined
from fairlead_conformance._oracle._any_order import adds_in_any_order, left_open
from fairlead_conformance._oracle._classes import is_drawn, is_exact, picks
from fairlead_conformance._oracle._lines import Lines
from fairlead_conformance._oracle._places import Places
from fairlead_conformance._oracle._shaken import FLUSHED, Shaken
from fairlead_conformance._oracle._widen import widened, widened_inputs

__all__ = ["Expected", "Reference"]

TURNS = 4
"""How often a graph is run moved. Each element is moved up in some and down in others."""

MORE_TURNS = 12
"""The same for a graph that may round to integers or compare, of which half of the turns show a jump that is possible,
and for ops whose operands are moved: the coordinates of a point, or the few elements of a norm, often move so that
nothing shows."""

MARGIN = 3.0
"""How many times the furthest that an element moved it may be off: several errors seldom all add up in a few runs."""

EAGER = 4.0
"""How many times eager's own error is right."""

REPEATS = 8
"""How often eager runs again on a device where it adds in any order: its error is the largest of all runs."""

USUAL = 0.75
"""The share of elements whose errors in eager are usual; those of the others may come from a jump in between."""


@dataclass(frozen=True)
class Expected:
    """One output. ``exact`` and ``bound`` are in float64 (complex128); None where eager's bits are the only answer.

    ``free`` marks integers and booleans that the errors of the ops before them change: anything may come out there.
    ``flushed`` is as right: the result for a backend that reads as zero what is nearly zero, typed as ``exact``.
    ``drawn`` results have a distribution and no values.
    """

    eager: torch.Tensor
    exact: torch.Tensor | None = None
    bound: torch.Tensor | None = None
    free: torch.Tensor | None = None
    flushed: torch.Tensor | None = None
    drawn: bool = False


class Reference:
    """A graph's meaning, worked out once and asked for any inputs. ``numerics``: what the backend declares.

    The graph is on the device that is judged; inputs, and what is right for them, are on the CPU.
    ``is_drawn``: the results are random numbers. ``signed_zeros``, by output: whether -0 is not 0 in what exact ops
    give.
    """

    def __init__(self, graph: Graph, numerics: Collection[str] = ()) -> None:
        self.graph = graph
        self._home = placed(graph, "cpu")
        self._numerics = numerics
        self._module = to_fx(self._home)
        self.is_drawn = is_drawn(graph)
        self.signed_zeros = (not picks(graph),) * len(graph.outputs)
        self._exact = is_exact(graph) and "ftz" not in numerics
        self._shaken: Shaken | None = None

    def eager(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """What torch computes on the CPU, op by op."""
        with torch.no_grad():
            return list(self._module(*inputs))

    def _beside(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """What torch computes where the graph is. Raises `Declined` for what torch runs on the CPU alone."""
        if self._home is self.graph:
            return self.eager(inputs)
        device = device_of(self.graph)
        try:
            with torch.no_grad():
                results = list(self._there(*copies(inputs, device)))
        except (NotImplementedError, RuntimeError) as error:
            if lost(device):
                raise
            self.eager(inputs)  # what fails everywhere is a defect of the case
            said = f"{error}".strip().splitlines()[0]
            raise Declined({kind_of(device): f"torch itself does not run it there: {said}"}) from error
        if not self.is_drawn:
            self._same_types(results, self.eager(inputs), kind_of(device))
        return list(map(home, results))

    def _same_types(self, there: Sequence[torch.Tensor], here: Sequence[torch.Tensor], kind: str) -> None:
        """Raise `Declined` where torch's kernels for the device give other types than the CPU's, which the graph has.

        Norms of halves keep their statistics in float32 on CUDA, and those of running statistics keep none.
        """
        for index, (a, b) in enumerate(zip(there, here, strict=True)):
            if a.device.type != kind:
                raise Declined({kind: f"torch itself has output {index} on {a.device}: no operand is a tensor"})
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                said = f"output {index} is {a.dtype} {list(a.shape)}, and on the CPU {b.dtype} {list(b.shape)}"
                raise Declined({kind: f"torch's own types differ there: {said}"})

    @functools.cached_property
    def _there(self) -> torch.fx.GraphModule:
        return to_fx(self.graph)

    def also_right(
        self, inputs: Sequence[Any], expected: Sequence[Expected], got: Sequence[torch.Tensor]
    ) -> Mapping[int, torch.Tensor]:
        """By output, the elements that are as right as eager's.

        Where equal elements are, an op may tell any place; a NaN may come out anywhere along the lines of a transform.
        """
        lines = self._lines.right(inputs, got)
        places = self._places.right(inputs, [e.eager for e in expected], got)
        return {**lines, **{i: right | lines[i] if i in lines else right for i, right in places.items()}}

    @functools.cached_property
    def _lines(self) -> Lines:
        return Lines(self._home)

    @functools.cached_property
    def _places(self) -> Places:
        return Places(self._home)

    def expected(self, inputs: Sequence[Any]) -> list[Expected]:
        """What is right for these inputs, by output. Does not touch the generator's state where nothing is drawn.

        Float64 on the CPU says what is right. Eager beside it is where the graph is: the bits of exact ops are its,
        and so is the error that no backend has to be better than.
        """
        if left_open(self.graph):
            raise Declined({"max_unpool": "which of several values for one place stays is open here"})
        if _reads_beyond(self.graph, inputs):
            raise Declined({"segment_reduce": "lengths that are not those of its data, which it was told not to check"})
        eager = self._beside(inputs)
        if self.is_drawn:
            return [Expected(e, drawn=True) for e in eager]
        if self._exact:
            return [Expected(e) for e in eager]
        again = [self._beside(inputs) for _ in range(REPEATS if adds_in_any_order(self.graph) else 0)]
        others = _flushed(inputs) if "ftz" in self._numerics else ()
        exact, least, moved, flushed = self._widened(inputs, others) or self._narrow(inputs, others)
        return [
            _expected(own, wide, floor, [m[i] for m in moved], [f[i] for f in flushed], [a[i] for a in again])
            for i, (own, wide, floor) in enumerate(zip(eager, exact, least, strict=True))
        ]

    def _widened(self, inputs: Sequence[Any], others: Sequence[Sequence[Any]]) -> _Runs | None:
        """None for a graph that insists on its types, such as one that reads the bits of a number."""
        if any(node.op == "aten.view.dtype" for node in self.graph.walk()):
            return None  # its bits would be those of a wider number, and more of them
        with contextlib.suppress(FairleadError, RuntimeError, TypeError, NotImplementedError, ValueError, IndexError):
            if self._shaken is None:
                steps = _in_steps(self._home)
                self._shaken = Shaken(steps, widened(steps), self._numerics)
            wide = [widened_inputs(self._home, each) for each in (inputs, *others)]
            return _runs(self._shaken, wide[0], wide[1:])
        return None

    def _narrow(self, inputs: Sequence[Any], others: Sequence[Sequence[Any]]) -> _Runs:
        return _runs(Shaken(self._home, self._home, self._numerics), inputs, others)


def _reads_beyond(graph: Graph, inputs: Sequence[Any]) -> bool:
    """Whether a reduction over segments that checks nothing has lengths that other values have made wrong."""
    given = {item.value.id: x for item, x in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        if node.op != "aten.segment_reduce.default" or node.args[6] is not True:
            continue
        data, lengths, axis = node.args[0], node.args[2], node.args[5]
        if isinstance(data, Value) and isinstance(lengths, Value) and lengths.id in given and isinstance(axis, int):
            return bool((given[lengths.id].sum(-1) != data.tensor.shape[axis]).any())
    return False


_SOFTMAXES_OF_SUMS = frozenset(("nn.scaled_dot_product_attention", "nn.scaled_dot_product_attention_backward"))
"""Ops with an exponential of a sum of products: what is wrong with the sum, in proportion to its terms, is wrong with
the result, in proportion to the result, so that each has to be moved by itself."""


def _in_steps(graph: Graph) -> Graph:
    """The graph with those ops taken apart, but for half precision, whose sums and exponentials are in float32."""
    found = [node for node in graph.walk() if node.op in _SOFTMAXES_OF_SUMS]
    if any(value.tensor.dtype.itemsize < DType.f32.itemsize for node in found for value in node.results if value):
        return graph
    return decompose(graph, DECOMPOSABLE - _SOFTMAXES_OF_SUMS) if found else graph


_Runs = tuple[Sequence[Any], Sequence[Any], Sequence[Sequence[Any]], Sequence[Sequence[Any]]]
"""Results unmoved, what each may be wrong by at least, results of runs that were moved, and of runs of other inputs."""


def _runs(shaken: Shaken, inputs: Sequence[Any], others: Sequence[Sequence[Any]]) -> _Runs:
    """``others`` are inputs that a backend may read in the place of these."""
    exact, least = shaken.exact(inputs)
    turns = 0 if not shaken.moves else MORE_TURNS if shaken.needs_turns else TURNS
    moved = [shaken.moved(inputs, turn) for turn in range(turns)]
    return exact, least, moved, [shaken.exact(each)[0] for each in others]


def _flushed(inputs: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """The inputs with zeros for what is nearly zero, where any is."""
    flushed = [torch.where(x.abs() < FLUSHED, x * 0, x) if _flushes(x) else x for x in inputs]
    return [flushed] if any(_flushes(x) and not torch.equal(x, y) for x, y in zip(inputs, flushed, strict=True)) else []


def _flushes(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype in (torch.float32, torch.bfloat16)


def _expected(
    eager: torch.Tensor,
    exact: torch.Tensor,
    least: torch.Tensor | float,
    moved: Sequence[torch.Tensor],
    flushed: Sequence[torch.Tensor],
    again: Sequence[torch.Tensor],
) -> Expected:
    zeroed = flushed[0] if flushed else None
    if not (eager.is_floating_point() or eager.is_complex()):
        steady = eager == exact
        for other in moved:
            steady &= other == exact
        return Expected(eager, free=~steady, flushed=zeroed)
    wide = torch.complex128 if eager.is_complex() else torch.float64
    exact = exact.to(wide)
    furthest = torch.zeros(exact.shape, dtype=torch.float64)
    for other in moved:
        furthest = torch.maximum(furthest, (other.to(wide) - exact).abs().nan_to_num(nan=0.0, posinf=0.0))
    own = (eager.to(wide) - exact).abs().nan_to_num(nan=0.0, posinf=0.0)
    for other in again:
        own = torch.maximum(own, (other.to(wide) - exact).abs().nan_to_num(nan=0.0, posinf=0.0))
    usual = 1.0 if again else USUAL  # in any order, what happened to one element happens to another in the next run
    return Expected(eager, exact, _allowed(MARGIN * furthest + least, own, usual), flushed=zeroed)


def _allowed(bound: torch.Tensor, own: torch.Tensor, share: float) -> torch.Tensor:
    """At least four times eager's error: that of the element, and that which a ``share`` has beside the bound."""
    if not bound.numel():
        return bound
    ratio = (own / bound).nan_to_num(nan=0.0, posinf=0.0)
    usual = float(torch.quantile(ratio.flatten()[:65536], share))
    return torch.maximum(bound * max(1.0, EAGER * usual), EAGER * own)
