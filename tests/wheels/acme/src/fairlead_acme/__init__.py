"""The Acme backend: runs thirteen ops with NumPy, which stands in for your SDK."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from fairlead.backend import API_VERSION, Capabilities, Options, Probe, Support
from fairlead.ir import DimExpr, Graph, Node, Value

if TYPE_CHECKING:
    import torch

# How each op is said in your SDK's words; arguments come in the order of ATen's signature, defaults filled in.
RULES: dict[str, Callable[..., Any]] = {
    "aten.add.Tensor": lambda np, x, y, alpha: np.add(x, scaled(np, y, alpha)),
    "aten.sub.Tensor": lambda np, x, y, alpha: np.subtract(x, scaled(np, y, alpha)),
    "aten.mul.Tensor": lambda np, x, y: np.multiply(x, y),
    "aten.div.Tensor": lambda np, x, y: np.divide(x, y),
    "aten.neg.default": lambda np, x: np.negative(x),
    "aten.exp.default": lambda np, x: np.exp(x),
    "aten.tanh.default": lambda np, x: np.tanh(x),
    "aten.relu.default": lambda np, x: np.maximum(x, 0),
    "aten.unsqueeze.default": lambda np, x, dim: np.expand_dims(x, dim).copy(),
    "aten.squeeze.dims": lambda np, x, dims: np.squeeze(x, tuple(d for d in dims if x.shape[d] == 1)).copy(),
    "aten.sum.dim_IntList": lambda np, x, dims, keep, dtype: np.sum(x, tuple(dims or ()) or None, "f8", keepdims=keep),
    "aten.mm.default": lambda np, x, y: np.matmul(x, y),
    "aten.linear.default": lambda np, x, w, b: np.matmul(x, w.T) + (0 if b is None else b),
}


def scaled(np: Any, y: Any, alpha: float) -> Any:
    """``y`` times ``alpha``, not rounded: torch rounds once, and what is rounded twice is far off where sums cancel."""
    return y if alpha == 1 else np.multiply(y, alpha, dtype=np.float64)


class AcmeOptions(Options, frozen=True, kw_only=True):
    """``trap``: raise where a result overflows or is not a number."""

    trap: bool = False


class AcmeExecutable:
    """The graph, op by op; weights are held by reference."""

    fresh_outputs = True

    def __init__(
        self,
        graph: Graph,
        options: AcmeOptions,
        constants: Mapping[int, torch.Tensor],
    ) -> None:
        import numpy

        self._np = numpy
        self._graph = graph
        self._on_error: Any = "raise" if options.trap else "ignore"
        self._weights = {graph.inputs[i].value.id: numpy.from_dlpack(t) for i, t in constants.items()}
        self.baked = frozenset(constants)

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        np = self._np
        free = (given.value.id for i, given in enumerate(self._graph.inputs) if i not in self.baked)
        values: dict[int, Any] = dict(self._weights)
        for key, x in zip(free, inputs, strict=True):
            values[key] = x if isinstance(x, int) else np.from_dlpack(x)
        with np.errstate(all="ignore", over=self._on_error, invalid=self._on_error):
            for node in self._graph.nodes:
                arguments = (values[a.id] if isinstance(a, Value) else a for a in node.args)
                # The graph says what a result is. NumPy promotes by rules of its own: f32 plus an int64 is f64 to it.
                values[node.result.id] = np.asarray(RULES[node.op](np, *arguments), dtype=np.float32)
        return [values[value.id] for value in self._graph.output_values()]


class AcmeBackend:
    """What the entry point leads to. Core checks dtypes, devices and the other capabilities before it asks."""

    name = "acme"
    api_version = API_VERSION
    options_type = AcmeOptions
    capabilities = Capabilities.of_package("fairlead_acme")

    def probe(self) -> Probe:
        if importlib.util.find_spec("numpy") is None:
            return Probe(ok=False, reason="numpy is not installed: pip install numpy")
        return Probe(ok=True, devices=("cpu",), versions={"numpy": metadata.version("numpy")})

    def supports(self, node: Node, /) -> Support:
        if node.op not in RULES:
            return Support.no(f"no rule for {node.op}")
        if any(isinstance(argument, DimExpr) for argument in node.args):
            return Support.no("a size that is known only at the call")
        return Support.yes()

    def compile(
        self,
        graph: Graph,
        options: AcmeOptions,
        constants: Mapping[int, torch.Tensor],
        /,
    ) -> AcmeExecutable:
        return AcmeExecutable(graph, options, constants)


backend = AcmeBackend()
