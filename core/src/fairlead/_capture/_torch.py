"""What Fairlead knows of torch's private modules. Checked on torch 2.8, 2.13 and 2.15.

What is read: AOTAutograd's metadata of the graph being compiled (`torch._guards.TracingContext`), the source of each
input of the Dynamo graph (``node.meta["grapharg"].source``), and ``torch._dynamo.backends.common.aot_autograd`` as
the way in. Each function degrades to "not known" where a release has moved what it reads, so that a new torch costs
optimisations, not answers. What Dynamo keeps of a compiled program is in `_dynamo`, how AOTAutograd divides a training
graph in `_partition`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch._functorch.config
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext, tracing
from torch.utils._python_dispatch import _disable_current_modes

from fairlead._capture._decompositions import table
from fairlead._capture._partition import partition, recomputing


class InputSource(NamedTuple):
    """Where an input of a Dynamo graph comes from.

    The qualified name of a module's parameter or buffer, or else no kind.
    """

    kind: str
    name: str


class Mutations(NamedTuple):
    """How the outputs of an AOTAutograd forward graph start.

    First come those that overwrite inputs, then the user's.
    """

    targets: tuple[int, ...]
    user_aliases: tuple[int | None, ...]


def aot_compile(
    gm: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    inference: Callable[..., Any],
    recompute: bool = False,
) -> Callable[..., Any]:
    """Run AOTAutograd over a Dynamo graph.

    The three compilers get ATen graphs and return boxed callables. A graph is functional, but for what it writes to its
    inputs at the end. With ``recompute``, what the forward saves is torch's choice for compilers that fuse. Where a
    checkpoint draws again what it drew before, the state of the generator is a tensor, and not, as CUDA has it by
    default, a generator that is passed to the graph.
    """
    with _states_as_tensors():
        return aot_autograd(
            fw_compiler=forward,
            bw_compiler=backward,
            inference_compiler=inference,
            decompositions=table(),
            partition_fn=recomputing if recompute else partition,
            keep_inference_input_mutations=True,
        )(gm, list(inputs))


def _states_as_tensors() -> contextlib.AbstractContextManager[object]:
    config: Any = torch._functorch.config
    option = "graphsafe_rng_functionalization"
    patched: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    return config.patch({option: False}) if hasattr(config, option) else patched


def input_sources(gm: torch.fx.GraphModule) -> tuple[InputSource, ...]:
    """For each placeholder of a Dynamo graph, what it is.

    Whether it is a parameter or buffer of a module, and its qualified name.
    """
    return tuple(_source(n) for n in gm.graph.nodes if n.op == "placeholder")


def mutations() -> Mutations | None:
    """What AOTAutograd knows of the forward or inference graph that is being compiled; None where it does not say."""
    context = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    if metadata is None:
        return None
    targets = tuple(metadata.mutated_inp_runtime_indices)
    aliases = tuple(o.base_idx if o.output_type.name in _INPUT_ALIASES else None for o in metadata.output_info)
    return Mutations(targets, aliases)


def hidden_writes() -> frozenset[int]:
    """The inputs of the graph that is being compiled that are written behind autograd's back, as through ``x.data``."""
    metadata: Any = getattr(TracingContext.try_get(), "fw_metadata", None)
    written = enumerate(getattr(metadata, "input_info", ()))
    return frozenset(i for i, info in written if getattr(info, "mutations_hidden_from_autograd", False))


def passes_through() -> bool:
    """Whether the inference graph that is being compiled gives just what AOTAutograd hands out.

    Then its wrapper writes back no input, makes no view anew, wraps nothing, leaves gradients on or off as they are and
    has no sizes to tell Dynamo of that vary. False where that is not known.
    """
    metadata: Any = getattr(TracingContext.try_get(), "fw_metadata", None)
    try:
        return not (
            metadata.mutated_inp_runtime_indices
            or metadata.num_intermediate_bases
            or metadata.is_rng_op_functionalized
            or metadata.tokens
            or metadata.grad_enabled_mutation is not None
            or metadata.dynamic_outputs
            or any(o.output_type.name not in _HANDED_OUT for o in metadata.output_info)
            or any(hasattr(each, "attrs") for each in metadata.subclass_inp_meta)
            or any(hasattr(each, "attrs") for each in metadata.subclass_fw_graph_out_meta)
        )
    except AttributeError:
        return False


def within_a_backward() -> bool:
    """Whether autograd's engine has called this, as it does where a checkpoint computes again what it did not save."""
    return int(torch._C._current_graph_task_id()) != -1


autocasts: Callable[[], bool] = torch._C._is_any_autocast_enabled
"""Whether autocast is on, for whatever device."""


no_modes: Callable[[], contextlib.AbstractContextManager[object]] = _disable_current_modes
"""Within, no mode sees the ops that this thread runs: none of the caller's, which may count them, and none of
AOTAutograd's, which looks at those of a first call.
"""


class Tracing:
    """What is being traced, so that more of it can be traced later: sizes that are symbols stay the symbols they are.

    To be made while Dynamo has a graph compiled. Later releases may have no such context; then all sizes are fixed.
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._context = TracingContext.try_get()
        self._inputs: Sequence[Any] = inputs

    def fixed(self, tensors: Sequence[Any]) -> list[Any]:
        """Tensors as AOTAutograd takes them beside the inputs, whose sizes are numbers."""
        mode = getattr(self._context, "fake_mode", None)
        if mode is None:
            return list(tensors)
        inputs = set(map(id, self._inputs))

        def fixed(tensor: torch.Tensor) -> Any:
            made = mode.from_tensor(tensor, static_shapes=True)
            if id(made) not in inputs:
                return made
            # it was an input when Dynamo looked at it, in whose place there is another one now
            return mode.from_tensor(torch.empty_like(tensor), static_shapes=True)

        return [fixed(t) if isinstance(t, torch.Tensor) else t for t in tensors]

    def inputs(self) -> list[Any]:
        """The inputs of Dynamo's graph as AOTAutograd takes them."""
        return list(self._inputs)

    def release(self) -> None:
        """Keep of the inputs only what AOTAutograd, which has seen them, made of them; no memory of the caller's."""
        mode = getattr(self._context, "fake_mode", None)
        if mode is not None:
            self._inputs = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in self._inputs]

    def resumed(self) -> contextlib.AbstractContextManager[object]:
        """Trace on, here and now."""
        if self._context is None or TracingContext.try_get() is self._context:
            return contextlib.nullcontext()
        return tracing(self._context)


_HANDED_OUT = ("non_alias", "unsafe_view_alias", "custom_function_view")
_INPUT_ALIASES = ("alias_of_input", "is_input")
_PART = re.compile(r"_(modules|parameters|buffers)\[['\"]([^'\"]+)['\"]\]")


def _source(node: torch.fx.Node) -> InputSource:
    source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    text = str(name() if callable(name) else name)
    parts = _PART.findall(text)
    if not parts or not text.endswith("]") or parts[-1][0] == "modules":
        return InputSource("", text)
    return InputSource("parameter" if parts[-1][0] == "parameters" else "buffer", ".".join(p[1] for p in parts))
