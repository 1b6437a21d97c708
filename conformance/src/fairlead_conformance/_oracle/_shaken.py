"""Runs of a graph with each node's results moved by what its op may be wrong by."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch.fx import Interpreter

from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Node, TensorType, Value
from fairlead_conformance._oracle._classes import Noise, noise_of
from fairlead_conformance._oracle._spacing import SPACINGS
from fairlead_conformance._oracle._widen import rounds

__all__ = ["FLUSHED", "Shaken"]

FLUSHED = 2.0**-126
"""The number below which a backend that declares ``ftz`` may take f32 and bf16 for zero: their smallest normal one."""


class Shaken:
    """A graph to run again and again, each time moved in another way.

    ``declared`` is the graph with the types that count; ``graph`` is the one that runs, which may be wider. What only
    leaves the graph is not moved: what it may be wrong by is known for each element, by `exact`.
    """

    def __init__(self, declared: Graph, graph: Graph, numerics: Collection[str]) -> None:
        self._module = to_fx(graph)
        self._ftz = "ftz" in numerics
        self._noise: dict[int, Noise] = {}
        self._dtypes: dict[int, DType] = {}
        for own, wide in zip(declared.nodes, graph.nodes, strict=True):
            self._enter(own, wide, numerics)
        read = {v.id for n in declared.nodes for v in n.operands()}
        self._last = frozenset(v.id for v in declared.output_values()) - read
        self._outputs = tuple(v.id for v in declared.output_values())
        moved = any(map(_moves_operands, self._noise.values()))
        self.moves = moved or bool(self._dtypes.keys() - self._last)
        self.needs_turns = moved or any(id(n) not in self._noise for n in graph.nodes)

    def _enter(self, own: Node, wide: Node, numerics: Collection[str]) -> None:
        types = {r.id: r.type.dtype for r in own.results if r is not None and isinstance(r.type, TensorType)}
        dtypes = {i: d for i, d in types.items() if rounds(d)}
        noise = noise_of(own, max(dtypes.values(), key=SPACINGS.__getitem__), numerics) if dtypes else None
        if noise is not None:
            self._noise[id(wide)] = noise
            self._dtypes.update(dtypes)

    def exact(self, inputs: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The results, unmoved, and what each may be wrong by at least: a tensor, or 0."""
        run = _Run(self, None)
        with torch.no_grad():
            return tuple(run.run(*inputs)), tuple(run.amounts.get(i, 0.0) for i in self._outputs)

    def moved(self, inputs: Sequence[Any], turn: int) -> tuple[Any, ...]:
        """The results, moved in a way that ``turn`` decides: odd turns move all terms of a sum the same way."""
        with torch.no_grad():
            return tuple(_Run(self, turn).run(*inputs))


class _Run(Interpreter):
    """One run; ``turn`` None moves nothing."""

    def __init__(self, shaken: Shaken, turn: int | None) -> None:
        super().__init__(shaken._module)
        self.amounts: dict[int, torch.Tensor] = {}
        self._shaken = shaken
        self._turn = turn
        self._generator = torch.Generator().manual_seed(turn or 0)
        self._from: dict[torch.fx.Node, Noise] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        noise = self._noise(n)
        if noise is None:
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        given = args
        if self._turn is not None and _moves_operands(noise) and n not in self._from:
            share = noise.operands or noise.terms / 2 * math.sqrt(max(_depth(args), noise.count))
            coherent = self._turn % 2 == 1 and not noise.operands
            given = torch.fx.node.map_aggregate(args, lambda a: self._operand(a, share, coherent))
            if noise.points is not None:
                points = args[noise.points]
                scale = points.abs().clamp(min=1)  # of what (x + 1) / 2 * size - 1 rounds, however x is reflected after
                moved = points + share * scale * self._signs(points.shape).to(points.dtype)
                given = (*given[: noise.points], moved, *given[noise.points + 1 :])
        result = getattr(self, n.op)(n.target, given, kwargs)
        value = n.meta.get("value")
        dtype = self._shaken._dtypes.get(value.id) if isinstance(value, Value) else None
        if not isinstance(value, Value) or dtype is None or not _moves(result):
            return result
        return self._result(value.id, result, self._amount(n, noise, args, kwargs, result, dtype))

    def _noise(self, n: torch.fx.Node) -> Noise | None:
        """That of the node of the graph that an FX node runs, or one of whose results it picks."""
        node = n.meta.get("node")
        if node is not None:
            return self._shaken._noise.get(id(node))
        if "value" not in n.meta or n.op != "call_function":
            return None
        source = n.all_input_nodes[0].meta.get("node") if n.all_input_nodes else None
        noise = self._shaken._noise.get(id(source))
        if noise is not None:
            self._from[n] = noise
        return noise

    def _operand(self, arg: Any, share: float, coherent: bool) -> Any:
        """An operand, moved by this share of itself: every element in its own way, or all in the same."""
        if not _moves(arg):
            return arg
        return arg * (1 + share * self._signs(() if coherent else arg.shape)).to(arg.abs().dtype)

    def _amount(
        self, n: torch.fx.Node, noise: Noise, args: Any, kwargs: Any, result: torch.Tensor, dtype: DType
    ) -> torch.Tensor:
        """What each element may be wrong by: units in its last place, and what the terms of a sum come to."""
        size = result.abs().double()
        least = args[0].abs().double() if noise.least == "operand" else noise.least
        size = torch.maximum(size, torch.as_tensor(least, dtype=torch.float64))
        spacing = SPACINGS[dtype]
        units = torch.ldexp(torch.ones_like(size), torch.frexp(size).exponent - 1) * spacing.at_one
        tiny = FLUSHED if self._ftz and spacing.at_zero / spacing.at_one == FLUSHED else spacing.at_zero
        amount = noise.ulps * units.clamp(min=tiny)
        if not noise.by_magnitude:  # a sum inside, as of a norm or of a softmax, is wrong in proportion
            return amount + noise.terms / 2 * math.sqrt(max(_depth(args), noise.count)) * size
        # (1 + sqrt(n)) u sum |a||b|, however the terms cancel
        magnitudes = torch.fx.node.map_aggregate(args, _magnitude)
        sign = -1 if n.target is torch.ops.aten.sub.Tensor else 1  # so that magnitudes add up
        scalars = {k: sign * abs(v) if type(v) in (int, float) else v for k, v in kwargs.items()}  # alpha and beta
        magnitude: torch.Tensor = getattr(self, n.op)(n.target, magnitudes, scalars).abs().double()
        return amount + noise.terms / 2 * (1 + math.sqrt(_terms(args, result))) * magnitude

    @property
    def _ftz(self) -> bool:
        return self._shaken._ftz

    def _result(self, value: int, result: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
        if self._turn is None:
            self.amounts[value] = amount
            return result
        if value in self._shaken._last:
            return result
        moved = result + (amount * self._signs(amount.shape)).to(result.abs().dtype)
        return torch.where(result.isfinite(), moved, result)  # infinity, moved by infinity, is no number

    def _signs(self, shape: Sequence[int]) -> torch.Tensor:
        return torch.randint(0, 2, tuple(shape), generator=self._generator).double() * 2 - 1


def _moves_operands(noise: Noise) -> bool:
    """Whether what is wrong shows in the results of a run with other operands, and not as a share of the results."""
    return bool(noise.operands) or bool(noise.terms and not noise.by_magnitude)


def _moves(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())


def _magnitude(x: Any) -> Any:
    return x.abs().to(x.dtype) if _moves(x) else abs(x) if isinstance(x, float) else x


def _terms(args: Any, result: torch.Tensor) -> float:
    """How many terms each element of a sum has: exactly for a product of matrices, about that for a convolution."""
    sizes = sorted((a.numel() for a in _tensors(args)), reverse=True)
    out = max(result.numel(), 1)
    if len(sizes) == 1 and sizes[0] == result.numel():
        return _depth(args)
    if len(sizes) < 2:
        return max(sizes[0] / out if sizes else 1.0, 1.0)
    return max(math.sqrt(sizes[0] * sizes[1] / out), 1.0)


def _depth(args: Any) -> float:
    """How many terms add up in ops that do not say: those of the longest dimension of any operand."""
    return max((float(n) for a in _tensors(args) for n in a.shape), default=1.0) or 1.0


def _tensors(args: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []

    def visit(arg: Any) -> Any:
        if _moves(arg):
            found.append(arg)
        return arg

    torch.fx.node.map_aggregate(args, visit)
    return found
