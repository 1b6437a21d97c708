"""A graph that runs op by op until its sizes come again, and is replayed from then on."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch

from fairlead.interpret import in_clean_thread, to_fx
from fairlead.ir import Graph, Kind, Role, TensorType, Value, dims, row_major
from fairlead_cudagraphs._policy import Recordings
from fairlead_cudagraphs._pool import pool_of
from fairlead_cudagraphs._recording import Recording, once, recording_on, room_for

__all__ = ["CudaGraphsExecutable"]

_WEIGHTS = (Role.parameter, Role.buffer, Role.constant)

_MOST_LENT = 4
"""So many recordings at once may lend what they saved for one set of sizes; further calls run op by op."""


class CudaGraphsExecutable:
    """A graph of torch's kernels.

    Weights are read where they are, and what a forward's recording saved where that left it; other inputs are copied
    into the recording.
    """

    baked: frozenset[int] = frozenset()
    fresh_outputs = True
    takes_parameters = True

    def __init__(self, graph: Graph, recordings: int, warm_ups: int) -> None:
        self._graph = graph
        self._module = to_fx(graph)
        self._recordings: Recordings[Recording] = Recordings(recordings, warm_ups)
        tensors = [i for i, item in enumerate(graph.inputs) if isinstance(item.value.type, TensorType)]
        self._weights = tuple(i for i in tensors if graph.inputs[i].role in _WEIGHTS)
        self._copied = tuple(i for i in tensors if graph.inputs[i].role not in _WEIGHTS)
        self._lent = _lent(graph)
        self._numbers = tuple(i for i in range(len(graph.inputs)) if i not in tensors)
        self._pool = pool_of(_device_of(graph))

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        if torch.cuda.is_current_stream_capturing():  # the caller records all of it
            return self._op_by_op(inputs)
        sizes = tuple(
            inputs[index] if axis is None else inputs[index].shape[axis]
            for index, axis in (s.source for s in self._graph.symbols)
        )
        numbers = tuple(inputs[i] for i in self._numbers)
        addresses = tuple(inputs[i].data_ptr() for i in self._weights)
        with self._pool.turn():
            left = self._in_place(inputs)
            key = (self._pool.epoch, sizes, numbers, addresses, left)
            for another in range(_MOST_LENT):
                found = self._recordings.find(
                    (*key, another),
                    lambda: in_clean_thread(lambda: self._record(inputs, sizes, {i for i, *_ in left})),
                )
                if found is None:
                    break
                if not found.is_lent:
                    return self._replayed(found, inputs)
        return self._op_by_op(inputs)

    def _replayed(self, recording: Recording, inputs: Sequence[Any]) -> Sequence[Any]:
        if self._lent:
            self._pool.reclaim(recording)
        return recording.replay(inputs)

    def _in_place(self, inputs: Sequence[Any]) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """What a forward's recording lent, with addresses and strides: there it lies at every call of this backward."""
        if self._graph.kind is not Kind.backward:
            return ()
        places = ((i, inputs[i].data_ptr()) for i in self._copied)
        return tuple((i, address, inputs[i].stride()) for i, address in places if self._pool.stays(address))

    def readable(self) -> Mapping[str, str]:
        """What is recorded: calls of torch's kernels, as Python."""
        return {"recorded.py": self._module.code}

    def _op_by_op(self, inputs: Sequence[Any]) -> Sequence[Any]:
        with torch.no_grad():
            results: Sequence[Any] = self._module(*inputs)
        return results

    def _record(self, inputs: Sequence[Any], sizes: Sequence[int], left: Container[int]) -> Recording:
        self._pool.sweep()
        copied = [i for i in self._copied if i not in left]
        env = {s.name: size for s, size in zip(self._graph.symbols, sizes, strict=True)}
        given = list(inputs)
        with recording_on(self._pool.stream):
            for i in copied:
                type_ = self._graph.inputs[i].value.tensor
                strides = type_.strides if type_.strides is not None else row_major(type_.shape)
                wanted = [dims.evaluate(s, env) for s in strides]
                given[i] = room_for(inputs[i].shape, wanted, inputs[i], self._pool.device)
                once(given[i], given[i].stride()).copy_(once(inputs[i], given[i].stride()))
            gradients = self._graph.kind is Kind.backward
            return Recording(self._module, given, self._pool, copied=copied, lent=self._lent, together=gradients)


_STAYS = (Role.saved, Role.mutation)
"""What only the backward reads, and what is written to inputs at once."""


def _lent(graph: Graph) -> tuple[int, ...]:
    """The results of a forward that stay where they are, and are not its inputs."""
    given = {item.value.id for item in graph.inputs}
    if graph.kind is not Kind.forward:
        return ()
    return tuple(
        k
        for k, output in enumerate(graph.outputs)
        if output.role in _STAYS and isinstance(output.value, Value) and output.value.id not in given
    )


def _device_of(graph: Graph) -> torch.device:
    """The device of the graph's values, all of which are on CUDA."""
    values = (r for node in graph.nodes for r in node.results if r is not None)
    devices = sorted({v.type.device for v in values if isinstance(v.type, TensorType)})
    if len(devices) != 1:
        raise ValueError(f"a recording is of one device, and the graph is on {', '.join(devices) or 'none'}")
    return torch.device(devices[0])
