"""What Fairlead's backends are measured against: the vendors' own paths, and their runtimes alone.

Each function takes a `fairlead._models.Model` and returns something to call with its inputs. They run in a process
each: ``openvino.torch`` registers decompositions with torch that change every later capture in the same process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch._dynamo.backends.common import aot_autograd

import fairlead
from fairlead._models import Model, tensors_of
from fairlead.backend import Executable
from fairlead.hooks import CompileJob, hookimpl, plugin_manager

__all__ = [
    "bare_onnxrt",
    "bare_openvino",
    "bare_openxla",
    "bare_tvm",
    "exported_onnxrt",
    "frozen_onnxrt",
    "frozen_watched_onnxrt",
    "fx_graph",
    "inductor_freezing",
    "no_op",
    "openvino_torch",
    "openvino_torch_aot",
    "run_onnxrt",
    "run_openvino",
    "run_openxla",
]

Call = Callable[..., Any]


def inductor_freezing(model: Model) -> Call:
    """Inductor with weights taken for constants, folded and packed by oneDNN: changes of them are not seen."""
    torch._inductor.config.freezing = True
    return torch.compile(model.module)


def openvino_torch(model: Model) -> Call:
    """OpenVINO's own backend of torch.compile, told to compute float32 in float32 and to use torch's threads."""
    return _openvino_torch(model, {})


def openvino_torch_aot(model: Model) -> Call:
    """The same in its ``aot_autograd`` mode, for models that its default mode fails on."""
    return _openvino_torch(model, {"aot_autograd": True})


def _openvino_torch(model: Model, options: dict[str, Any]) -> Call:
    import openvino.torch  # noqa: F401 - registers the backend

    config: dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    return torch.compile(model.module, backend="openvino", options=options | {"config": config})


def exported_onnxrt(model: Model) -> Call:
    """A session of the model that ``torch.onnx.export`` writes, called by ``run``."""
    import onnxruntime

    with torch.no_grad():
        names = list(tensors_of(model.module(*model.args, **model.kwargs)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        torch.onnx.export(model.module, model.args, str(path), kwargs=model.kwargs, dynamo=True, verbose=False)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    wanted = [each.name for each in session.get_inputs()]

    def call(*args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        given = {**{name: tensor.numpy() for name, tensor in zip(wanted, args, strict=False)}, **_arrays(kwargs)}
        outputs = session.run(None, {name: given[name] for name in wanted})
        return {name: torch.from_numpy(array) for name, array in zip(names, outputs, strict=True)}

    return call


def _arrays(kwargs: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in kwargs.items()}


def frozen_onnxrt(model: Model) -> Call:
    """Fairlead's onnxrt, frozen with its weights: neither guards nor weights are looked at."""
    return _frozen(model, "constant")


def frozen_watched_onnxrt(model: Model) -> Call:
    """Fairlead's onnxrt, frozen, and its weights compared at each call."""
    return _frozen(model, "watched")


def _frozen(model: Model, weights: Literal["constant", "watched"]) -> Call:
    compiled = fairlead.compile(model.module, backend="onnxrt")
    with torch.no_grad():
        compiled(*model.args, **model.kwargs)
    fairlead.freeze(compiled, weights=weights)
    return compiled


def no_op(model: Model) -> Call:
    """torch.compile through AOTAutograd with a compiler that does nothing: what any backend pays."""
    return torch.compile(model.module, backend=aot_autograd(fw_compiler=_boxed))


def fx_graph(model: Model) -> Call:
    """The graph that `no_op` gets, called with its inputs as they were: what the ops alone take."""
    seen: list[Any] = []

    def record(gm: torch.fx.GraphModule, _: Sequence[Any]) -> Call:
        def call(*inputs: Any) -> Any:
            seen[:] = [gm.forward, inputs]
            return gm.forward(*inputs)

        return _takes_list(call)

    with torch.no_grad():
        torch.compile(model.module, backend=aot_autograd(fw_compiler=record))(*model.args, **model.kwargs)
    forward, inputs = seen

    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*inputs)

    return call


def _boxed(gm: torch.fx.GraphModule, _: Sequence[Any]) -> Call:
    return _takes_list(gm.forward)


def _takes_list(function: Call) -> Call:
    """AOTAutograd passes a list to a function that has this attribute, and is the faster for it."""

    def boxed(args: list[Any]) -> Any:
        return function(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def bare_onnxrt(model: Model) -> Call:
    """ONNX Runtime on the graph that Fairlead lowers: a binding made once, inputs copied in, outputs copied out."""
    return _Bare(model, "onnxrt", _bound_session)


def bare_openvino(model: Model) -> Call:
    """OpenVINO on the graph that Fairlead lowers: one request, inputs copied in, outputs copied out."""
    return _Bare(model, "openvino", _bound_request)


def bare_openxla(model: Model) -> Call:
    """XLA's executable of the graph that Fairlead lowers: arrays made once, inputs copied in, outputs copied out."""
    return _Bare(model, "openxla", _bound_program)


def bare_tvm(model: Model) -> Call:
    """TVM's machine on the graph that Fairlead lowers: weights packed once, inputs copied in, outputs copied out."""
    return _Bare(model, "tvm", _bound_machine)


def run_onnxrt(model: Model) -> Call:
    """The same without the copies: the runtime's call itself. Gives the example's result whatever the inputs are."""
    return _Bare(model, "onnxrt", _bound_session).run


def run_openvino(model: Model) -> Call:
    """The same without the copies, in OpenVINO."""
    return _Bare(model, "openvino", _bound_request).run


def run_openxla(model: Model) -> Call:
    """The same without the copies, in XLA."""
    return _Bare(model, "openxla", _bound_program).run


class _Spy:
    """Sees the one Part of a compiled model, and what it is called with."""

    def __init__(self) -> None:
        self.jobs: list[CompileJob] = []
        self.inputs: Sequence[Any] = ()
        self.outputs: Sequence[torch.Tensor] = ()

    @hookimpl(wrapper=True)
    def fairlead_compile(self, job: CompileJob) -> Any:
        executable: Executable = yield
        self.jobs.append(job)
        return _Recorded(executable, self)


class _Recorded:
    def __init__(self, executable: Executable, spy: _Spy) -> None:
        self.baked, self.fresh_outputs = executable.baked, executable.fresh_outputs
        self._executable, self._spy = executable, spy

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        self._spy.inputs = list(inputs)
        self._spy.outputs = self._executable(inputs)
        return self._spy.outputs


class _Bare:
    """A runtime with its memory bound once: what is left of a call when nobody is in between."""

    def __init__(self, model: Model, backend: str, bind: Callable[..., tuple[Call, list[torch.Tensor]]]) -> None:
        spy = _Spy()
        plugin_manager().register(spy, "spy")
        with torch.no_grad():
            result = tensors_of(fairlead.compile(model.module, backend=backend)(*model.args, **model.kwargs))
        # What was compiled would keep a second copy of the packed weights, and take part of the caches.
        plugin_manager().unregister(name="spy")
        torch._dynamo.reset()
        if len(spy.jobs) != 1:
            raise RuntimeError(f"the model has {len(spy.jobs)} Parts; a runtime alone runs one")
        self._inputs = {name: self._place(tensor, spy.inputs) for name, tensor in model.tensors.items()}
        self._outputs = {name: self._place(tensor, spy.outputs) for name, tensor in result.items()}
        self._shapes = {name: tensor.shape for name, tensor in result.items()}
        self._bound = [value.clone() if isinstance(value, torch.Tensor) else value for value in spy.inputs]
        self._run, self._results = bind(spy.jobs[0], self._bound)
        if backend != "tvm":  # whose threads are torch's; those that copy would spin after it, on a runtime's own cores
            torch.set_num_threads(1)

    def run(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        self._run()
        return self._results

    @staticmethod
    def _place(tensor: torch.Tensor, among: Sequence[Any]) -> int:
        address = tensor.data_ptr()
        return next(i for i, each in enumerate(among) if isinstance(each, torch.Tensor) and each.data_ptr() == address)

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        for name, tensor in (*((str(i), tensor) for i, tensor in enumerate(args)), *kwargs.items()):
            self._bound[self._inputs[name]].copy_(tensor)
        self._run()
        return {name: self._results[i].clone().view(self._shapes[name]) for name, i in self._outputs.items()}


def _empty_outputs(job: CompileJob) -> list[torch.Tensor]:
    from fairlead._torch_types import TORCH_DTYPES

    types = [value.tensor for value in job.graph.output_values()]
    return [torch.empty([int(d) for d in each.shape], dtype=TORCH_DTYPES[each.dtype]) for each in types]


def _bound_session(job: CompileJob, inputs: Sequence[Any]) -> tuple[Call, list[torch.Tensor]]:
    from fairlead_onnxrt import OnnxRuntimeOptions
    from fairlead_onnxrt._session import as_ort_value, model_file, open_session

    file = model_file(job.graph, job.constants)
    opened = open_session(job.graph, file, OnnxRuntimeOptions(), job.constants)
    outputs = _empty_outputs(job)
    binding = opened.session.io_binding()
    passed = [name for i, name in enumerate(file.inputs) if i not in job.constants]
    for name, tensor in zip(passed, inputs, strict=True):
        if name is not None:
            binding.bind_ortvalue_input(name, as_ort_value(tensor))
    for name, tensor in zip(file.outputs, outputs, strict=True):
        binding.bind_ortvalue_output(name, as_ort_value(tensor))
    # The weights live as long as what the lambda refers to.
    return lambda: opened.session.run_with_iobinding(binding), outputs


def _bound_request(job: CompileJob, inputs: Sequence[Any]) -> tuple[Call, list[torch.Tensor]]:
    from openvino._pyopenvino import InferRequest

    from fairlead_openvino import OpenVINOOptions
    from fairlead_openvino._compiled import compile_file, model_file, ov_tensor

    compiled = compile_file(job.graph, model_file(job.graph), OpenVINOOptions(), job.constants)
    outputs = _empty_outputs(job)
    request = compiled.model.create_infer_request()
    passed = [port for i, port in enumerate(compiled.inputs) if i not in job.constants]
    for port, tensor in zip(passed, inputs, strict=True):
        if port is not None:
            request.set_input_tensor(port, ov_tensor(tensor))
    for port, tensor in zip(compiled.outputs, outputs, strict=True):
        request.set_output_tensor(port, ov_tensor(tensor))
    # The public ``infer`` spends forty microseconds on having no inputs; this is what it calls in the end. The weights
    # live as long as what the lambda refers to.
    return lambda: InferRequest.infer(request, {}, True, False) if compiled else None, outputs


def _bound_program(job: CompileJob, inputs: Sequence[Any]) -> tuple[Call, list[torch.Tensor]]:
    from fairlead_openxla import OpenXLAOptions
    from fairlead_openxla._executable import XlaExecutable
    from fairlead_openxla._memory import exported
    from fairlead_openxla._settings import calling

    with calling():
        program, arrays = XlaExecutable(job.graph, OpenXLAOptions(), job.constants).bound(inputs)
    outputs: list[torch.Tensor] = []

    def call() -> None:
        outputs[:] = [exported(each) for each in program(arrays)]

    return call, outputs


def _bound_machine(job: CompileJob, inputs: Sequence[Any]) -> tuple[Call, list[torch.Tensor]]:
    from fairlead_tvm import TVMOptions
    from fairlead_tvm._executable import TvmExecutable

    main, arguments = TvmExecutable(job.graph, TVMOptions(), job.constants).bound(inputs)
    outputs: list[torch.Tensor] = []

    def call() -> None:
        outputs[:] = main(*arguments)

    return call, outputs
