"""Runs an engine on the current CUDA stream, with torch's memory for inputs and fresh outputs.

Written by TensorRT's documentation, and checked against a stand-in of the SDK: no machine with a device that runs it
was at hand.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from fairlead.interpret import torch_dtype
from fairlead.ir import Graph, ScalarType
from fairlead.ir.dims import evaluator
from fairlead_onnx import ModelFile
from fairlead_tensorrt._account import Account, account, text
from fairlead_tensorrt._engine import build_plan, model_file
from fairlead_tensorrt._options import TensorRTOptions
from fairlead_tensorrt._sdk import Loaded, TensorRTError, sdk_of
from fairlead_tensorrt._sizes import Size, around

__all__ = ["EngineExecutable", "Stored"]


class Stored(msgspec.Struct, frozen=True):
    """An executable as it is stored: the lowered graph, and, where it was refittable, the engine without weights.

    ``timing`` and ``compiled`` are what the builder has measured and the runtime has compiled.
    """

    file: ModelFile
    sizes: dict[str, Size] = {}
    plan: bytes = b""
    timing: bytes = b""
    compiled: bytes = b""


@dataclass(frozen=True, slots=True)
class _Input:
    """One passed input: its place in a call, and its name in the engine."""

    place: int
    name: str
    is_dynamic: bool
    is_number: bool
    on_host: bool


@dataclass(frozen=True, slots=True)
class _Output:
    name: str
    dtype: torch.dtype
    sizes: tuple[Callable[[Mapping[str, int]], int], ...]


class EngineExecutable:
    """A graph as an engine. ``baked`` are the inputs whose tensors the engine holds.

    A graph of fixed sizes is built at once, one with symbols when sizes are known, and again, for a wider range, when a
    call leaves the range that was built for.
    """

    fresh_outputs = True

    def __init__(
        self,
        graph: Graph,
        options: TensorRTOptions,
        constants: Mapping[int, torch.Tensor],
        stored: Stored | None = None,
    ) -> None:
        self.baked = frozenset(constants)
        self._graph = graph
        self._options = options
        self._sdk = sdk_of(options.flavour)
        self._device = _device_of(graph)
        self._constants = dict(constants)
        self._stored = Stored(model_file(graph, constants, options)) if stored is None else stored
        self._symbols = _symbols(graph, self.baked)
        self._changing = threading.Lock()
        self._runs: _Runs | None = None
        self._account: Account | None = None
        if self._stored.plan:
            self._runs = self._loaded()
        elif not graph.symbols:
            self._runs = self._built({})

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        env = {name: inputs[i] if dim is None else inputs[i].shape[dim] for name, i, dim in self._symbols}
        runs = self._runs
        if runs is None or not runs.holds(env):
            runs = self._fitting(env)
        return runs(inputs, env)

    def readable(self) -> Mapping[str, str]:
        """The model as it was lowered, in ONNX's text form, and the layers of the engine that was built."""
        files = {"onnx.txt": self._stored.file.text()}
        return files | ({"layers.txt": text(self._account)} if self._account else {})

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Give the engine new values; build it again where it was not made for that, or refuses them."""
        with self._changing:
            self._constants = dict(constants)
            if self._runs is None:
                return
            torch.cuda.synchronize(self._device)  # what was called before reads the weights before
            if not (self._runs.engine.is_refittable and self._runs.engine.refit(self._weights())):
                self._runs = self._built(self._stored.sizes)

    def stored(self) -> Stored:
        """What makes the same executable again, without the weights."""
        runs = self._runs
        if runs is None or not runs.engine.is_refittable:
            return msgspec.structs.replace(self._stored, plan=b"")
        return msgspec.structs.replace(self._stored, plan=runs.engine.without_weights(), compiled=runs.engine.cache())

    def _fitting(self, env: Mapping[str, int]) -> _Runs:
        with self._changing:
            if self._runs is None or not self._runs.holds(env):
                before = self._stored.sizes
                self._runs = self._built(
                    {s.name: around(s, env[s.name], before.get(s.name)) for s in self._graph.symbols}
                )
            return self._runs

    def _built(self, sizes: dict[str, Size]) -> _Runs:
        with torch.cuda.device(self._device):
            built = build_plan(
                self._sdk, self._graph, self._stored.file, self._constants, self._options, sizes, self._stored.timing
            )
            self._account = account(built.said)
            self._stored = msgspec.structs.replace(self._stored, sizes=sizes, timing=built.timing)
            return self._run(self._sdk.load(built.plan, self._stored.compiled))

    def _loaded(self) -> _Runs:
        with torch.cuda.device(self._device):
            engine = self._sdk.load(self._stored.plan, self._stored.compiled)
            if not engine.refit(self._weights()):
                raise TensorRTError("the stored engine does not take the weights")
            return self._run(engine)

    def _run(self, engine: Loaded) -> _Runs:
        inputs = tuple(
            _Input(place, name, not _is_static(value), isinstance(value.type, ScalarType), engine.in_host_memory(name))
            for place, (name, value) in enumerate(self._passed())
            if name is not None
        )
        outputs = tuple(
            _Output(name, torch_dtype(value.tensor.dtype), tuple(map(evaluator, value.tensor.shape)))
            for name, value in zip(self._stored.file.outputs, self._graph.output_values(), strict=True)
        )
        if kept := [each.name for each in outputs if engine.in_host_memory(each.name)]:
            raise TensorRTError(f"the engine leaves {', '.join(kept)} in host memory")
        return _Runs(engine, inputs, outputs, self._stored.sizes, self._device)

    def _passed(self) -> list[tuple[str | None, Any]]:
        pairs = enumerate(zip(self._stored.file.inputs, self._graph.inputs, strict=True))
        return [(name, given.value) for i, (name, given) in pairs if i not in self.baked]

    def _weights(self) -> dict[str, torch.Tensor]:
        names = self._stored.file.inputs
        return {name: t.detach().contiguous() for i, t in self._constants.items() if (name := names[i]) is not None}


class _Runs:
    """An engine and its idle contexts, by stream: the memory of a context is free once what its stream had is done.

    A context serves one call at a time; a call that finds none makes one.
    """

    def __init__(
        self,
        engine: Loaded,
        inputs: tuple[_Input, ...],
        outputs: tuple[_Output, ...],
        sizes: Mapping[str, Size],
        device: torch.device,
    ) -> None:
        self.engine = engine
        self._inputs = inputs
        self._outputs = outputs
        self._sizes = sizes
        self._device = device
        self._idle: defaultdict[int, list[Any]] = defaultdict(list)
        self._nowhere = torch.empty(16, dtype=torch.uint8, device=device)

    def holds(self, env: Mapping[str, int]) -> bool:
        """Whether the engine was built for these numbers."""
        return all(self._sizes[name].holds(number) for name, number in env.items() if name in self._sizes)

    def __call__(self, inputs: Sequence[Any], env: Mapping[str, int]) -> list[torch.Tensor]:
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream(self._device).cuda_stream
            idle = self._idle[stream]
            try:
                context = idle.pop()
            except IndexError:
                context = self.engine.context()
            try:
                return self._enqueued(context, inputs, env, stream)
            finally:
                idle.append(context)

    def _enqueued(self, context: Any, inputs: Sequence[Any], env: Mapping[str, int], stream: int) -> list[torch.Tensor]:
        held = [self._put(context, spec, inputs[spec.place]) for spec in self._inputs]
        results = []
        for spec in self._outputs:
            shape = [size(env) for size in spec.sizes]
            result = torch.empty(shape, dtype=spec.dtype, device=self._device)
            context.set_tensor_address(spec.name, self._address(result))
            results.append(result)
        if not context.execute_async_v3(stream):
            raise TensorRTError("the engine could not be enqueued")
        del held  # torch hands memory out again in the order of this stream
        return results

    def _put(self, context: Any, spec: _Input, given: Any) -> torch.Tensor:
        """Point the context to an input; returns the tensor that has to live until the call is enqueued."""
        if spec.is_number:
            tensor = torch.tensor(given, dtype=torch.int64, device="cpu" if spec.on_host else self._device)
        else:
            tensor = given.contiguous()
            if spec.is_dynamic and not context.set_input_shape(spec.name, tuple(tensor.shape)):
                raise TensorRTError(f"the engine has no profile for {tuple(tensor.shape)}")
        context.set_tensor_address(spec.name, self._address(tensor))
        return tensor

    def _address(self, tensor: torch.Tensor) -> int:
        """Where a tensor lies; for one of no elements anywhere but at null, which TensorRT refuses."""
        return tensor.data_ptr() or self._nowhere.data_ptr()


def _symbols(graph: Graph, baked: frozenset[int]) -> tuple[tuple[str, int, int | None], ...]:
    """The symbols of a graph, and where in a call each is read."""
    passed = [i for i in range(len(graph.inputs)) if i not in baked]
    place = {index: at for at, index in enumerate(passed)}
    return tuple((s.name, place[s.source[0]], s.source[1]) for s in graph.symbols)


def _is_static(value: Any) -> bool:
    return isinstance(value.type, ScalarType) or bool(value.type.is_static)


def _device_of(graph: Graph) -> torch.device:
    """The device of what the nodes compute; partition sees to it that there is one."""
    return torch.device(next(r.tensor.device for node in graph.nodes for r in node.results if r is not None))
