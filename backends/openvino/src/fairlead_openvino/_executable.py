"""Runs a compiled model: torch's memory for inputs and fresh outputs, from any thread."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import openvino
import torch
from openvino._pyopenvino import InferRequest

from fairlead.interpret import torch_dtype
from fairlead.ir import DType, Graph, ScalarType, Type
from fairlead.ir.dims import evaluator
from fairlead.passes import row_major_inputs
from fairlead_onnx import ModelFile, RealForm
from fairlead_openvino._bounds import is_within
from fairlead_openvino._compiled import Compiled, compile_file, evaluable, model_file, ov_tensor
from fairlead_openvino._options import OpenVINOOptions
from fairlead_openvino._ranges import can_be_cut, largest, largest_that_fits, near, too_high

__all__ = ["ModelExecutable"]

_SMALL = 16 * 1024
"""Up to so many bytes a copy is cheaper than giving OpenVINO another address."""

_NOTHING: dict[int, object] = {}
"""No inputs beside the tensors that are set: the public wrapper would spend forty microseconds on them."""


@dataclass(frozen=True, slots=True)
class _Port:
    """One input or output that the model has: its place in the call, its port, and its static shape."""

    place: int
    port: int
    dtype: torch.dtype
    shape: tuple[int, ...] | None
    sizes: tuple[Callable[[Mapping[str, int]], int], ...]
    is_number: bool

    @property
    def is_small(self) -> bool:
        return self.shape is not None and 0 < math.prod(self.shape) * self.dtype.itemsize <= _SMALL

    def sized(self, env: Mapping[str, int]) -> tuple[int, ...]:
        """The shape, with these values of symbols."""
        return tuple(size(env) for size in self.sizes) if self.shape is None else self.shape


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a call needs to know of the graph, worked out once.

    ``check``: which port says whether indices are right. ``bounded``: the places of inputs that have to be within
    bounds.
    """

    inputs: tuple[_Port, ...]
    outputs: tuple[_Port, ...]
    check: int | None
    graph: str
    symbols: tuple[tuple[str, int, int | None], ...]
    watched: tuple[int, ...]
    bounded: tuple[int, ...]
    largest: int
    cuttable: Callable[[frozenset[int]], bool]

    def require(self, held: Any) -> None:
        """Raises IndexError where an index was out of range, with which OpenVINO goes on.

        With one thread it goes on where a kernel has failed, too, and leaves out the rest (defects/silent.py): what
        says that all were in range has to have been written by this very call.
        """
        if not held:
            raise IndexError(f"an index is out of range in graph @{self.graph}")

    def wide(self, inputs: Sequence[Any]) -> frozenset[int]:
        """The places of inputs with 64-bit integers that do not fit into the 32 bits that the CPU plugin keeps."""
        return frozenset(place for place in self.watched if largest(inputs[place]) > self.largest)

    def cut(self, inputs: Sequence[Any], wide: frozenset[int]) -> list[Any] | None:
        """The inputs with those at ``wide`` cut to what fits, None where that would be seen."""
        if not self.cuttable(wide) or any(too_high(inputs[place]) for place in wide):
            return None
        if not all(near(inputs[place]) for place in self.watched if place not in wide):
            return None
        return [x.clamp(-self.largest, self.largest) if k in wide else x for k, x in enumerate(inputs)]


class ModelExecutable:
    """A graph as a compiled model. ``baked`` are the inputs whose tensors the model holds, ``file`` what it is made of.

    Lowers the graph where it is not given the ``file``.
    """

    fresh_outputs = True

    def __init__(
        self,
        graph: Graph,
        options: OpenVINOOptions,
        constants: Mapping[int, torch.Tensor],
        file: ModelFile | None = None,
    ) -> None:
        self.baked = frozenset(constants)
        self._rows = row_major_inputs(graph, self.baked)
        self._form = RealForm(self._rows.graph)
        self._graph = self._form.graph
        self.file = model_file(self._graph) if file is None else file
        self._options = options
        self.refit(constants)

    def readable(self) -> Mapping[str, str]:
        """The model as it was lowered, in ONNX's text form, and the steps that OpenVINO runs."""
        return {"onnx.txt": self.file.text(), "steps.txt": self._runs.steps()}

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Compile again: OpenVINO packs weights, so that new values in place are not enough."""
        held = self._form.constants(constants)

        def runs(*, any_numbers: bool) -> _Runs:
            compiled = compile_file(self._graph, self.file, self._options, held, any_numbers=any_numbers)
            others = functools.cache(functools.partial(runs, any_numbers=True)) if compiled.bounded else None
            return _Runs(compiled, _signature(self._graph, compiled, self.baked), others)

        self._runs = runs(any_numbers=False)
        self._run = self._rows.around(self._form.around(self._runs, self.baked), self.baked)

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        return self._run(inputs)


class _Runs:
    """A compiled model and its idle requests. A request serves one call at a time; a call that finds none makes one.

    ``others`` makes what runs inputs that this model is not to be asked of, at the first call with such.
    """

    def __init__(self, compiled: Compiled, signature: _Signature, others: Callable[[], _Runs] | None) -> None:
        self._compiled = compiled
        self._signature = signature
        self._others = others
        self._watches = bool(signature.watched)
        self._idle: list[_Request] = []
        self._evaluable: openvino.Model | None = None

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        if self._others is not None and not all(is_within(inputs[place]) for place in self._signature.bounded):
            return self._others()(inputs)
        if self._signature.largest < 0:  # a number of the graph's own does not fit, whatever the inputs are
            return self._evaluate(inputs)
        if self._watches and (wide := self._signature.wide(inputs)):
            cut = self._signature.cut(inputs, wide)
            if cut is None:
                return self._evaluate(inputs)
            inputs = cut
        try:
            request = self._idle.pop()
        except IndexError:
            request = _Request(self._compiled.model.create_infer_request(), self._signature)
        try:
            return request.run(inputs)
        finally:
            self._idle.append(request)

    def steps(self) -> str:
        """A line for each step of the compiled model: its kind, kernel, types and shapes, and the ops that it is of."""
        return "".join(map(_line, self._compiled.model.get_runtime_model().get_ordered_ops()))

    def _evaluate(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """By OpenVINO's reference implementations, which keep 64 bits; they are slow, and some ops have none."""
        ports = self._signature
        given: list[Any] = [None] * len(ports.inputs)
        for port in ports.inputs:
            given[port.port] = torch.as_tensor(inputs[port.place], dtype=port.dtype).contiguous()
        env = {name: inputs[i] if dim is None else inputs[i].shape[dim] for name, i, dim in ports.symbols}
        outputs = [torch.empty(port.sized(env), dtype=port.dtype, device="cpu") for port in ports.outputs]
        held = numpy.ones((), bool)
        results = {port.port: ov_tensor(tensor) for port, tensor in zip(ports.outputs, outputs, strict=True)}
        if ports.check is not None:
            results[ports.check] = openvino.Tensor(held, shared_memory=True)
        if self._evaluable is None:
            self._evaluable = evaluable(self._compiled.source)
        try:
            self._evaluable.evaluate([results[i] for i in range(len(results))], list(map(ov_tensor, given)))
        except RuntimeError as error:
            raise OverflowError(
                f"OpenVINO computes 64-bit integers in 32 bits, and an input has one beyond {ports.largest}"
            ) from error
        ports.require(held)
        return outputs


def _line(step: openvino.Node) -> str:
    kind, kernel, ops = (step.get_rt_info()[key].value for key in ("layerType", "primitiveType", "originalLayersNames"))
    results = [f"{port.get_element_type().get_type_name()}{port.get_partial_shape()}" for port in step.outputs()]
    return f"{kind:<20} {kernel:<24} {', '.join(results)}  of {ops}\n"


class _Request:
    """One infer request: small tensors are copied through buffers of its own, others are used where they lie.

    What lies where it lay is not handed over again, which is slow once a model has filled the caches.
    """

    def __init__(self, request: Any, signature: _Signature) -> None:
        self._request = request
        self._signature = signature
        inputs = [(p, self._buffer(p, request.set_input_tensor)) for p in signature.inputs]
        # By kind, since on a tiny graph a call is as long as deciding anew what each port needs.
        self._copied = tuple((p.place, b) for p, b in inputs if b is not None and not p.is_number)
        self._checked = tuple((p, b) for p, b in inputs if b is None or p.is_number)
        self._addresses = [-1] * len(self._checked)
        self._outputs = tuple((p, self._buffer(p, request.set_output_tensor)) for p in signature.outputs)
        self._placed = any(buffer is None for _, buffer in self._outputs)
        self._buffers = tuple(buffer for _, buffer in self._outputs if buffer is not None)
        self._held = numpy.ones((), bool)
        if signature.check is not None:
            request.set_output_tensor(signature.check, openvino.Tensor(self._held, shared_memory=True))

    @staticmethod
    def _buffer(port: _Port, put: Callable[[int, Any], None]) -> torch.Tensor | None:
        if not port.is_small or port.shape is None:
            return None
        with torch.inference_mode(False):  # later calls, in other modes, write to it
            buffer = torch.empty(port.shape, dtype=port.dtype, device="cpu")
        put(port.port, ov_tensor(buffer))
        return buffer

    def run(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        if self._signature.check is not None:
            self._held.fill(False)
        for place, buffer in self._copied:
            buffer.copy_(inputs[place])
        held = self._put(inputs) if self._checked else ()  # memory that only this call keeps alive
        if not self._placed:
            InferRequest.infer(self._request, _NOTHING, True, False)
            self._signature.require(self._held)
            return [buffer.clone() for buffer in self._buffers]
        env = {name: inputs[i] if dim is None else inputs[i].shape[dim] for name, i, dim in self._signature.symbols}
        placed = [self._place(port, env) if buffer is None else buffer for port, buffer in self._outputs]
        InferRequest.infer(self._request, _NOTHING, True, False)
        del held  # not any sooner
        self._signature.require(self._held)
        return [o if buffer is None else o.clone() for o, (_, buffer) in zip(placed, self._outputs, strict=True)]

    def _put(self, inputs: Sequence[Any]) -> Sequence[torch.Tensor]:
        """Hand over what is not merely copied; the tensors that are used where they lie."""
        held = []
        for at, (port, buffer) in enumerate(self._checked):
            given = inputs[port.place]
            if buffer is not None:
                buffer.fill_(given)
                continue
            if given.dtype is not port.dtype:
                given = given.to(port.dtype)
            given = given.contiguous()
            held.append(given)
            address = given.data_ptr()
            if port.shape is None or address != self._addresses[at]:
                self._request.set_input_tensor(port.port, ov_tensor(given))
                self._addresses[at] = address
        return held

    def _place(self, port: _Port, env: Mapping[str, int]) -> torch.Tensor:
        shape = port.sized(env)
        tensor = torch.empty(shape, dtype=port.dtype, device="cpu")
        if 0 not in shape:
            self._request.set_output_tensor(port.port, ov_tensor(tensor))
        return tensor


def _signature(graph: Graph, compiled: Compiled, baked: frozenset[int]) -> _Signature:
    passed = [i for i in range(len(graph.inputs)) if i not in baked]
    place = {index: at for at, index in enumerate(passed)}
    inputs = tuple(
        _port(place[i], port, graph.inputs[i].value.type) for i in passed if (port := compiled.inputs[i]) is not None
    )
    outputs = tuple(
        _port(at, port, value.tensor)
        for at, (port, value) in enumerate(zip(compiled.outputs, graph.output_values(), strict=True))
    )
    dynamic = any(o.shape is None for o in outputs)
    symbols = tuple((s.name, place[s.source[0]], s.source[1]) for s in graph.symbols) if dynamic else ()
    watched = tuple(p.place for p in inputs if p.dtype is torch.int64)
    bounded = tuple(sorted(place[i] for i in compiled.bounded))
    tensors = frozenset(p.place for p in inputs if not p.is_number)

    @functools.cache
    def cuttable(wide: frozenset[int]) -> bool:
        return wide <= tensors and can_be_cut(graph, frozenset(passed[k] for k in wide))

    fits = largest_that_fits(graph)
    return _Signature(inputs, outputs, compiled.check, graph.name, symbols, watched, bounded, fits, cuttable)


def _port(place: int, port: int, type_: Type) -> _Port:
    if isinstance(type_, ScalarType):
        return _Port(place, port, torch.int64, (), (), True)
    dtype = torch.float32 if type_.dtype is DType.f64 else torch_dtype(type_.dtype)
    static = tuple(d for d in type_.shape if isinstance(d, int))
    if len(static) == type_.rank:
        return _Port(place, port, dtype, static, (), False)
    return _Port(place, port, dtype, None, tuple(map(evaluator, type_.shape)), False)
