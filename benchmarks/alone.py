"""A vendor's runtime alone on a Part that Fairlead lowers: with everything bound once, and nobody in between.

Each ``bound_...`` takes what was compiled and the inputs of a call, and gives what runs the runtime's program on these
very tensors, and the list of its results. Whoever runs it keeps the Part, which has the weights, and all of the
tensors: they are read and written where they lie. It is the program of our executable itself: two that are compiled
alike need not be as fast.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from fairlead._torch_types import TORCH_DTYPES
from fairlead.backend import Executable
from fairlead.hooks import CompileJob, hookimpl, plugin_manager

__all__ = ["Bind", "Part", "bound_machine", "bound_program", "bound_request", "bound_session", "seeing"]

Run = Callable[[], Any]
Bind = Callable[["Part", Sequence[Any]], tuple[Run, list[torch.Tensor]]]


@dataclasses.dataclass
class Part:
    """What was compiled, with the inputs and results of its last call."""

    job: CompileJob
    executable: Executable
    inputs: Sequence[Any] = ()
    outputs: Sequence[torch.Tensor] = ()

    @property
    def baked(self) -> frozenset[int]:
        return self.executable.baked

    @property
    def fresh_outputs(self) -> bool:
        return self.executable.fresh_outputs

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        self.inputs = list(inputs)
        self.outputs = self.executable(inputs)
        return self.outputs

    def copied(self) -> list[Any]:
        """The inputs, in memory of their own."""
        return [value.clone() if isinstance(value, torch.Tensor) else value for value in self.inputs]


class _Spy:
    def __init__(self, backend: str) -> None:
        self.parts: list[Part] = []
        self._backend = backend

    @hookimpl(wrapper=True)
    def fairlead_compile(self, job: CompileJob) -> Any:
        executable: Executable = yield
        if job.backend.name != self._backend:
            return executable
        self.parts.append(Part(job, executable))
        return self.parts[-1]


@contextlib.contextmanager
def seeing(backend: str) -> Iterator[list[Part]]:
    """Have the list take what is compiled through a backend within, and what is called of it later."""
    spy = _Spy(backend)
    plugin_manager().register(spy, "spy")
    try:
        yield spy.parts
    finally:
        plugin_manager().unregister(name="spy")


def _bind(
    part: Part, program: Any, inputs: Sequence[Any], take: Callable[..., object], give: Callable[..., object]
) -> list[torch.Tensor]:
    """Have ``take`` bind each input that the program has, and ``give`` each result; what these are written to."""
    ports = (port for i, port in enumerate(program.inputs) if i not in part.baked)
    for port, tensor in zip(ports, inputs, strict=True):
        if port is not None:
            take(port, tensor)
    types = [value.tensor for value in part.job.graph.output_values()]
    outputs = [torch.empty([int(d) for d in each.shape], dtype=TORCH_DTYPES[each.dtype]) for each in types]
    for port, tensor in zip(program.outputs, outputs, strict=True):
        give(port, tensor)
    return outputs


def bound_session(part: Part, inputs: Sequence[Any]) -> tuple[Run, list[torch.Tensor]]:
    from fairlead_onnxrt._session import as_ort_value

    executable: Any = part.executable
    session = executable._runs._session.session
    binding = session.io_binding()
    outputs = _bind(
        part,
        executable.file,
        inputs,
        lambda name, tensor: binding.bind_ortvalue_input(name, as_ort_value(tensor)),
        lambda name, tensor: binding.bind_ortvalue_output(name, as_ort_value(tensor)),
    )
    return lambda: session.run_with_iobinding(binding), outputs


def bound_request(part: Part, inputs: Sequence[Any]) -> tuple[Run, list[torch.Tensor]]:
    from openvino._pyopenvino import InferRequest

    from fairlead_openvino._compiled import ov_tensor

    executable: Any = part.executable
    compiled = executable._runs._compiled
    request = compiled.model.create_infer_request()
    outputs = _bind(
        part,
        compiled,
        inputs,
        lambda port, tensor: request.set_input_tensor(port, ov_tensor(tensor)),
        lambda port, tensor: request.set_output_tensor(port, ov_tensor(tensor)),
    )
    # The public ``infer`` spends forty microseconds on having no inputs; this is what it calls in the end.
    return lambda: InferRequest.infer(request, {}, True, False), outputs


def bound_program(part: Part, inputs: Sequence[Any]) -> tuple[Run, list[torch.Tensor]]:
    from fairlead_openxla._memory import exported
    from fairlead_openxla._settings import calling

    executable: Any = part.executable
    with calling():
        program, arrays = executable.bound(inputs)
    outputs: list[torch.Tensor] = []

    def call() -> None:
        outputs[:] = [exported(each) for each in program(arrays)]

    return call, outputs


def bound_machine(part: Part, inputs: Sequence[Any]) -> tuple[Run, list[torch.Tensor]]:
    executable: Any = part.executable
    main, arguments = executable.bound(inputs)
    outputs: list[torch.Tensor] = []

    def call() -> None:
        outputs[:] = main(*arguments)

    return call, outputs
