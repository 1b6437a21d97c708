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
from alone import Bind, bound_machine, bound_program, bound_request, bound_session, seeing
from torch._dynamo.backends.common import aot_autograd

import fairlead
from fairlead._models import Model, tensors_of

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
    return _Bare(model, "onnxrt", bound_session)


def bare_openvino(model: Model) -> Call:
    """OpenVINO on the graph that Fairlead lowers: one request, inputs copied in, outputs copied out."""
    return _Bare(model, "openvino", bound_request)


def bare_openxla(model: Model) -> Call:
    """XLA's executable of the graph that Fairlead lowers: arrays made once, inputs copied in, outputs copied out."""
    return _Bare(model, "openxla", bound_program)


def bare_tvm(model: Model) -> Call:
    """TVM's machine on the graph that Fairlead lowers: weights packed once, inputs copied in, outputs copied out."""
    return _Bare(model, "tvm", bound_machine)


def run_onnxrt(model: Model) -> Call:
    """The same without the copies: the runtime's call itself. Gives the example's result whatever the inputs are."""
    return _Bare(model, "onnxrt", bound_session).run


def run_openvino(model: Model) -> Call:
    """The same without the copies, in OpenVINO."""
    return _Bare(model, "openvino", bound_request).run


def run_openxla(model: Model) -> Call:
    """The same without the copies, in XLA."""
    return _Bare(model, "openxla", bound_program).run


class _Bare:
    """A runtime with its memory bound once: what is left of a call when nobody is in between."""

    def __init__(self, model: Model, backend: str, bind: Bind) -> None:
        with seeing(backend) as parts, torch.no_grad():
            result = tensors_of(
                fairlead.compile(model.module, backend=backend, benchmark=False)(*model.args, **model.kwargs)
            )
        torch._dynamo.reset()
        if len(parts) != 1:
            raise RuntimeError(f"the model has {len(parts)} Parts; a runtime alone runs one")
        (part,) = parts
        self._part = part  # whose weights the runtime reads
        self._inputs = {name: self._place(tensor, part.inputs) for name, tensor in model.tensors.items()}
        self._outputs = {name: self._place(tensor, part.outputs) for name, tensor in result.items()}
        self._shapes = {name: tensor.shape for name, tensor in result.items()}
        self._bound = part.copied()
        self._run, self._results = bind(part, self._bound)
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
