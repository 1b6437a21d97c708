"""Backends that run everything in torch, each with one fault that one forward pass does not show."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import torch

from fairlead.backend import API_VERSION, Capabilities, Executable, NoOptions, Probe, Support
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Kind, Node

NAME = "faulty"


class Run:
    """One call of the torch module that a graph is: a fault replaces `__call__`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.module = to_fx(graph)

    def __call__(self, *inputs: Any) -> list[Any]:
        return list(self.module(*inputs))


class _Executable:
    fresh_outputs = True

    def __init__(self, run: Run, constants: Mapping[int, torch.Tensor]) -> None:
        self._run = run
        self._constants = dict(constants)
        self.baked = frozenset(constants)

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        given = iter(inputs)
        count = len(inputs) + len(self.baked)
        return self._run(*(self._constants[i] if i in self.baked else next(given) for i in range(count)))

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Nothing: weights that are baked in stay stale. Only the fault that bakes them gets here."""


class Faulty:
    """The backend. ``fault`` makes what runs a graph; ``capabilities`` beside all dtypes, training and symbols."""

    name = NAME
    api_version = API_VERSION
    options_type = NoOptions

    def __init__(self, fault: Callable[[Graph], Run] = Run, **capabilities: Any) -> None:
        self._fault = fault
        self.capabilities = Capabilities(
            devices=("cpu",), dtypes=tuple(DType), training=True, dynamic_shapes=True, **capabilities
        )

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        kept = {i: t.clone() for i, t in constants.items()} if self.capabilities.bakes_constants else {}
        return _Executable(self._fault(graph), kept)


def _tensors(items: Sequence[Any]) -> list[int]:
    return [i for i, item in enumerate(items) if isinstance(item, torch.Tensor)]


class Memoises(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        if not hasattr(self, "first"):
            self.first = super().__call__(*inputs)
        return [t.clone() for t in self.first]


class ReusesBuffers(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        buffers = self.__dict__.setdefault("buffers", {})
        results = []
        for index, t in enumerate(super().__call__(*inputs)):
            buffer = buffers.setdefault((index, t.shape), torch.empty_like(t))
            results.append(buffer.copy_(t))
        return results


class ClobbersInputs(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        results = [t.clone() for t in super().__call__(*inputs)]
        for index in _tensors(inputs):
            if inputs[index].is_floating_point():
                inputs[index].mul_(1.5)
        return results


class SwapsInputs(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        given = list(inputs)
        found = _tensors(given)
        for a, b in itertools.pairwise(found):
            if len(found) > 2 and given[a].shape == given[b].shape and given[a].dtype == given[b].dtype:
                given[a], given[b] = given[b], given[a]
                break
        return super().__call__(*given)


class DuplicatesFirstResult(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        results = super().__call__(*inputs)
        same = [i for i, t in enumerate(results) if t.shape == results[0].shape and t.dtype == results[0].dtype]
        for index in same[1:2]:
            results[index] = results[0].clone()
        return results


class CrashesOnEmpty(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        if any(not inputs[i].numel() for i in _tensors(inputs)):
            raise RuntimeError("launch with an empty grid")
        return super().__call__(*inputs)


class Wavers(Run):
    calls = 0

    def __call__(self, *inputs: Any) -> list[Any]:
        self.calls += 1
        factor = 1 + (self.calls % 2) * 3e-7
        return [t * factor if t.is_floating_point() else t for t in super().__call__(*inputs)]


class LosesBiasGradients(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        results = super().__call__(*inputs)
        backward = self.graph.kind is Kind.backward
        return [torch.zeros_like(t) if backward and t.numel() == t.shape[-1] else t for t in results]


class BendsGradients(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        factor = 1.01 if self.graph.kind is Kind.backward else 1.0
        return [t * factor if t.is_floating_point() else t for t in super().__call__(*inputs)]


class KeepsFirstSizes(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        sizes = [inputs[i].shape for i in _tensors(inputs)]
        first = self.__dict__.setdefault("sizes", sizes)
        results = super().__call__(*inputs)
        if sizes == first:
            return results
        return [t[:1].expand(t.shape).clone() if t.dim() and t.shape[0] else t for t in results]


class ChangesDefaultDtype(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        results = super().__call__(*inputs)
        torch.set_default_dtype(torch.float64)
        return results


class DrawsOneMore(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        torch.rand(1)
        return super().__call__(*inputs)


class DrawsConstants(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return super().__call__(*inputs)


class DropsNothing(Run):
    def __init__(self, graph: Graph) -> None:
        super().__init__(_replaced(graph, "aten.native_dropout.default", lambda args: (args[0], 0.0, True)))


class TakesOneBranch(Run):
    def __init__(self, graph: Graph) -> None:
        super().__init__(_replaced(graph, "hop.cond", lambda args: args, one_region=True))


class IgnoresCasts(Run):
    """Computes in float32 what is to be rounded to bfloat16 on the way."""

    def __call__(self, *inputs: Any) -> list[Any]:
        results = super().__call__(*inputs)
        if any("to_copy" in node.op for node in self.graph.nodes):
            return [inputs[0] - inputs[0] if t.dtype is torch.float32 else t for t in results]
        return results


class KeepsInputs(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        self.__dict__.setdefault("kept", []).append(inputs)
        return super().__call__(*inputs)


class SharesScratch(Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        self.scratch = inputs
        time.sleep(0.002)
        return super().__call__(*self.scratch)


def _replaced(graph: Graph, op: str, args: Callable[[Any], Any], *, one_region: bool = False) -> Graph:
    def other(node: Node) -> Node:
        if node.op != op:
            return node
        regions = (node.regions[0], node.regions[0]) if one_region else node.regions
        return msgspec.structs.replace(node, args=args(node.args), regions=regions)

    return msgspec.structs.replace(graph, nodes=tuple(map(other, graph.nodes)))
