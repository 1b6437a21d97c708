"""A graph compiled by torch-tensorrt, which lowers ATen ops to TensorRT's layers by itself.

Written by its documentation; it was never executed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fairlead.interpret import to_fx, torch_dtype
from fairlead.ir import Graph
from fairlead_tensorrt._options import TensorRTOptions
from fairlead_tensorrt._sdk import TensorRTError

__all__ = ["TorchTensorRTExecutable"]


class TorchTensorRTExecutable:
    """A graph of fixed sizes; what torch-tensorrt does not take runs in torch, within its program.

    Raises `TensorRTError` where torch-tensorrt is missing, and for a graph with symbols.
    """

    fresh_outputs = True

    def __init__(self, graph: Graph, options: TensorRTOptions, constants: Mapping[int, torch.Tensor]) -> None:
        if importlib.util.find_spec("torch_tensorrt") is None:
            raise TensorRTError("torch-tensorrt is not installed: pip install torch-tensorrt, or engine='builder'")
        if graph.symbols:
            raise TensorRTError("engine 'torch_tensorrt' takes graphs of fixed sizes: use 'builder', or dynamic=False")
        self.baked = frozenset(constants)
        self._graph = graph
        self._options = options
        self.refit(constants)

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Compile again, with these values."""
        import torch_tensorrt

        examples = [_example(given.value) for i, given in enumerate(self._graph.inputs) if i not in self.baked]
        program = torch.export.export(_Baked(self._graph, constants), tuple(examples))
        self._run = torch_tensorrt.dynamo.compile(
            program,
            arg_inputs=examples,
            disable_tf32=self._options.precision != "tf32",
            enable_autocast=self._options.precision in ("f16", "bf16"),
            autocast_low_precision_type=torch.bfloat16 if self._options.precision == "bf16" else torch.float16,
            optimization_level=self._options.optimization,
            workspace_size=self._options.workspace << 20,
            min_block_size=1,
        )

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[torch.Tensor]:
        results = self._run(*inputs)
        return [results] if isinstance(results, torch.Tensor) else list(results)


class _Baked(torch.nn.Module):
    """A graph whose constants are buffers."""

    def __init__(self, graph: Graph, constants: Mapping[int, torch.Tensor]) -> None:
        super().__init__()
        self._program = to_fx(graph)
        self._places = [i for i in range(len(graph.inputs)) if i not in constants]
        self._constants = tuple(constants)
        for i, tensor in constants.items():
            self.register_buffer(f"constant{i}", tensor.detach())

    def forward(self, *given: torch.Tensor) -> Any:
        inputs: list[Any] = [None] * (len(self._places) + len(self._constants))
        for place, tensor in zip(self._places, given, strict=True):
            inputs[place] = tensor
        for i in self._constants:
            inputs[i] = self.get_buffer(f"constant{i}")
        return self._program(*inputs)


def _example(value: Any) -> torch.Tensor:
    """A tensor of a value's type, for the capture."""
    type_ = value.tensor
    return torch.zeros(type_.shape, dtype=torch_dtype(type_.dtype), device=type_.device)
