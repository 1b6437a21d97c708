"""What a program hands back: results checked against the graph, and outputs laid out as eager lays them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.utils.dlpack

from fairlead._torch_types import TORCH_DTYPES
from fairlead.errors import ResultError
from fairlead.interpret import picking, restride
from fairlead.ir import DimExpr, Graph, Output, Role, TensorType, Type, Value, dims, row_major
from fairlead.partition import Part


class Outputs:
    """The outputs of a graph out of the registers that hold its values, with the strides that ``types`` give.

    What is saved for a backward, and what is copied into an input, no user sees: it has the strides that it was
    computed with.
    """

    def __init__(self, graph: Graph, types: Sequence[Type | None]) -> None:
        self._graph = graph
        self._types = types
        self._symbols = tuple((s.name, *s.source) for s in graph.symbols)
        self.symbolic = bool(self._symbols)
        self._picks: tuple[int, ...] = ()
        self._picked = picking(())
        self.read: frozenset[int] = frozenset()
        """The registers that outputs and symbols are read from."""
        self._fixed = _Fixed([])
        self._evaluated: tuple[tuple[int, _Strides], ...] = ()
        self._others: tuple[tuple[int, Any], ...] = ()

    def locate(self, registers: Mapping[int, int]) -> None:
        """Take note of the register of each value, by its id."""
        inputs = {i.value.id for i in self._graph.inputs}
        picks, fixed, evaluated, others = [], [], [], []
        for k, (output, type_) in enumerate(zip(self._graph.outputs, self._types, strict=True)):
            value = output.value
            picks.append(registers[value.id] if isinstance(value, Value) else 0)
            if not isinstance(value, Value):
                others.append((k, dims.evaluator(value.expr) if isinstance(value, DimExpr) else value))
            elif isinstance(type_, TensorType) and value.id not in inputs and not self._is_unseen(output, type_):
                strides = type_.strides if type_.strides is not None else row_major(type_.shape)
                if all(isinstance(s, int) for s in strides):
                    fixed.append((k, tuple(int(s) for s in strides)))
                else:
                    evaluated.append((k, tuple(map(dims.evaluator, strides))))
        self._picks, self._picked, self._fixed = tuple(picks), picking(picks), _Fixed(fixed)
        self.read = frozenset((*picks, *(index for _, index, _ in self._symbols)))
        self._evaluated, self._others = tuple(evaluated), tuple(others)

    def _is_unseen(self, output: Output, type_: TensorType) -> bool:
        """Whether no user sees the tensor itself; an input that gets other sizes or strides has those of the tensor."""
        if output.target is not None:
            return self._graph.inputs[output.target].value.type == type_
        return output.role is Role.saved

    def misplaced(self, registers: Sequence[Any]) -> Settled:
        """Which outputs have other strides than are wanted, for calls in which all come with the same ones."""
        return self._fixed.misplaced(self._picked(registers))

    def __call__(self, registers: Sequence[Any], settled: Settled | None = None) -> list[Any]:
        """The outputs; ``settled`` where it is known which of them have other strides than are wanted."""
        outputs = list(self._picked(registers))
        self._lay_out(outputs, self._fixed.misplaced(outputs) if settled is None else settled)
        if self._evaluated or self._others:
            env = self.environment(registers)
            for k, expressions in self._evaluated:
                wanted = tuple(e(env) for e in expressions)
                if outputs[k].stride() != wanted:
                    outputs[k] = restride(outputs[k], wanted)
            for k, other in self._others:
                outputs[k] = other(env) if callable(other) else other
        return outputs

    def straight(self, start: int, stop: int) -> Straight | None:
        """How outputs come of results in these registers, and of inputs before them; None where symbols are read."""
        if self.symbolic or start == stop:
            return None
        others = dict(self._others)
        kept = list(dict.fromkeys(pick for k, pick in enumerate(self._picks) if k not in others and pick < start))
        places = {pick: place for place, pick in enumerate((*range(start, stop), *kept))}
        of_others = {k: place for place, k in enumerate(others, start=len(places))}
        picks = [of_others[k] if k in others else places[pick] for k, pick in enumerate(self._picks)]
        return Straight(picking(kept), tuple(others.values()), picking(picks))

    def of_results(self, results: Sequence[Any], straight: Straight, settled: Settled) -> list[Any]:
        """The outputs of a program that is one Part, out of its results and what ``straight`` has beside them."""
        outputs = list(straight.outputs(results))
        self._lay_out(outputs, settled)
        return outputs

    def _lay_out(self, outputs: list[Any], misplaced: Settled) -> None:
        for k, strides in misplaced:
            outputs[k] = restride(outputs[k], strides)

    def environment(self, registers: Sequence[Any]) -> dict[str, int]:
        """The values of the symbols in this call."""
        return {
            name: registers[index] if axis is None else registers[index].shape[axis]
            for name, index, axis in self._symbols
        }


_Picking = Callable[[Sequence[Any]], tuple[Any, ...]]


class Straight(NamedTuple):
    """What gives the inputs that are outputs, outputs that are no tensors, and what gives all outputs of these.

    The last is asked of one sequence: the results, then those inputs, then what is no tensor.
    """

    kept: _Picking
    others: tuple[Any, ...]
    outputs: _Picking


Settled = tuple[tuple[int, tuple[int, ...]], ...]
"""Outputs that do not lie as they are wanted, by place, and the strides that are."""


class _Fixed:
    """Outputs whose strides are numbers, by place: a training step has hundreds, which lie as they did before."""

    def __init__(self, wanted: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        self._wanted = tuple(wanted)
        self._places = [k for k, _ in wanted]
        self._met: tuple[list[tuple[int, ...]], Settled] = [], ()
        """The strides that a call came with, and which outputs had other ones than are wanted."""

    def misplaced(self, outputs: Sequence[Any]) -> Settled:
        """Those that have other strides than are wanted."""
        found = [outputs[k].stride() for k in self._places]
        known, others = self._met
        if found != known:
            others = tuple(each for each, strides in zip(self._wanted, found, strict=True) if strides != each[1])
            self._met = found, others
        return others


_Strides = tuple[Callable[[Mapping[str, int]], int], ...]


def checked(part: Part, results: Sequence[Any], env: Mapping[str, int]) -> list[torch.Tensor]:
    """The results of a Part as tensors of the types it declares; a `ResultError` where they are not."""
    declared = [v.tensor for v in part.graph.output_values()]
    if len(results) != len(declared):
        raise _wrong(part, f"returned {len(results)} results, not {len(declared)}")
    tensors = [r if isinstance(r, torch.Tensor) else torch.utils.dlpack.from_dlpack(r) for r in results]
    anywhere = _seeds(part)
    for index, (tensor, type_) in enumerate(zip(tensors, declared, strict=True)):
        shape = tuple(dims.evaluate(d, env) for d in type_.shape)
        if tuple(tensor.shape) != shape:
            raise _wrong(part, f"result {index} has shape {list(tensor.shape)}, not {list(shape)}")
        if tensor.dtype != TORCH_DTYPES[type_.dtype]:
            raise _wrong(part, f"result {index} has dtype {tensor.dtype}, not {TORCH_DTYPES[type_.dtype]}")
        if str(tensor.device) != type_.device and index not in anywhere:
            raise _wrong(part, f"result {index} is on {tensor.device}, not {type_.device}")
    return tensors


_CUDA_ATTENTION = frozenset(
    f"aten._scaled_dot_product_{kind}_attention.default" for kind in ("cudnn", "efficient", "flash")
)


def _seeds(part: Part) -> set[int]:
    """The results that are seeds of attention's dropout.

    Torch has them on the CPU, or on the device while a CUDA graph is recorded, whatever their types say, and takes
    them back from either.
    """
    ids = {r.id for n in part.graph.nodes if n.op in _CUDA_ATTENTION for r in n.results[2:] if r is not None}
    return {i for i, value in enumerate(part.graph.output_values()) if value.id in ids} if ids else set()


def _wrong(part: Part, what: str) -> ResultError:
    return ResultError(
        f"backend {part.backend!r} {what}",
        where=f"Part {part.graph.name}, {len(part.graph.nodes)} nodes",
        next=f"report it to the backend's vendor; until then leave {part.backend!r} out, or allow fallback",
    )
