"""The graphs of a model, as capture makes them, with the tensors behind their weights. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch
from torch._dynamo import mark_dynamic

from fairlead._capture import Captured, capture
from fairlead._models._fir import WEIGHTS
from fairlead._models._model import Model
from fairlead._models._tensors import tensors_of
from fairlead.errors import ArgumentError, CaptureError
from fairlead.interpret import to_fx
from fairlead.ir import Graph, Kind, Role, verify

__all__ = ["CapturedGraphs", "backward", "capture_model", "mark"]


@dataclass
class CapturedGraphs:
    """Every graph that a model gave, in the order in which they came, and the weights of each by input index.

    ``left_out`` says of each graph that has no form in the IR why; torch ran it.
    """

    graphs: list[Graph] = field(default_factory=list)
    weights: list[dict[int, torch.Tensor]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def constants(self) -> dict[tuple[int, int], torch.Tensor]:
        """The weights by graph and input, as a file keeps them; a backward's are those of its forward."""
        return {
            (number, index): tensor
            for number, held in enumerate(self.weights)
            for index, tensor in held.items()
            if self.graphs[number].inputs[index].value.tensor.is_static
        }

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        """Keep a graph and let torch run it op by op, so that what comes after it is captured too."""
        name = f"{captured.graph.kind}_{len(self.graphs)}"
        graph = verify(msgspec.structs.replace(captured.canonical, name=name))
        weights: dict[int, torch.Tensor] = {}
        self.graphs.append(graph)
        self.weights.append(weights)
        run, constants = to_fx(graph), tuple(captured.constants.values())

        def call(args: list[Any]) -> Any:
            given = [*args, *constants]
            args.clear()
            for index, each in enumerate(graph.inputs):
                if each.role in WEIGHTS and index not in weights and isinstance(given[index], torch.Tensor):
                    # buffers are written to while the model runs
                    weights[index] = given[index].detach() if each.role is Role.parameter else given[index].clone()
            return run(*given)

        return _boxed(call)

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        """Note why, and let torch run the graph."""
        self.left_out.append(f"the {kind} graph is left out: it has {reason}")

        def call(args: list[Any]) -> Any:
            given = list(args)
            args.clear()
            return gm.forward(*given)

        return _boxed(call)


def _boxed(call: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    call._boxed_call = True  # type: ignore[attr-defined]  # AOTAutograd then passes one list, which the callee empties
    return call


def capture_model(model: Model, tensors: Mapping[str, torch.Tensor], *, training: bool) -> CapturedGraphs:
    """Call the model once with these tensors and keep every graph on the way; in training with a loss and its backward.

    Every graph is in the normal form that backends meet.

    Raises `ArgumentError` where the model does not run, and `CaptureError` where nothing was captured.
    """
    found = CapturedGraphs()

    def backend(gm: torch.fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        return capture(gm, inputs, found)

    args, kwargs = model.inputs(dict(tensors))
    try:
        with torch.no_grad():  # what fails in plain PyTorch fails with the plainer message
            model.module.eval()(*args, **kwargs)
        model.module.train(training)
        with torch.set_grad_enabled(training):
            output = torch.compile(model.module, backend=backend)(*args, **kwargs)
            if training:
                backward(output)
    except Exception as error:
        raise ArgumentError(
            f"the model {model.name!r} fails: {type(error).__name__}: {_first_line(error)}",
            where=f"calling it with {', '.join(f'{key} {list(value.shape)}' for key, value in tensors.items())}",
            next="make model(*inputs) work first" + ("; --train also calls loss.backward()" if training else ""),
        ) from error
    if not found.graphs:
        raise CaptureError(
            f"no graph could be captured: {'; '.join(found.left_out) or 'the model runs no op of torch'}",
            where=f"MODEL {model.name!r}",
            next="see what torch makes of it with TORCH_LOGS=graph_breaks",
        )
    return found


def mark(model: Model, tensors: Mapping[str, torch.Tensor]) -> None:
    """Make symbols of the dimensions that the model calls dynamic."""
    for name, dims in model.dynamic.items():
        for dim in dims:
            mark_dynamic(tensors[name], dim)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]


def backward(output: Any) -> None:
    """Run the backward of what a model returned: of its loss, where it has one, or else of a sum of squares."""
    _loss(output).backward()  # type: ignore[no-untyped-call]


def _loss(output: Any) -> torch.Tensor:
    tensors = tensors_of(output)
    if (loss := tensors.get("loss")) is not None:
        return loss
    return torch.stack([t.float().square().mean() for t in tensors.values() if t.requires_grad]).sum()
