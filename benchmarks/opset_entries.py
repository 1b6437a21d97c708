"""Captures entries of PyTorch's OpInfo database and prints the ops of each, one JSON line an entry and direction.

A program of its own, because importing the database changes torch for the whole process, and because a few entries
crash it. Samples are captured as Fairlead captures a program, but for Dynamo, which is left out for speed: the graph
that AOTAutograd gets has one node, a call of the entry, with the sample's tensors as inputs.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from opset_capture import Ops, line
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.testing._internal import common_methods_invocations as invocations
from torch.utils._pytree import tree_flatten, tree_unflatten

from fairlead._capture import Sink, capture

DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16, torch.float64, torch.float8_e4m3fn)
"""An entry is captured in the first of these that it takes."""


def run_sample(op: Callable[..., Any], sample: Any, training: bool, sink: Sink) -> None:
    """Capture one sample for a sink and run it, and where it is captured for training its backward too."""
    leaves, spec = tree_flatten(((sample.input, *sample.args), sample.kwargs))
    leaves = [prepared(x, training) for x in leaves]
    tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def call(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        filled = list(leaves)
        for index, tensor in zip(tensors, given, strict=True):
            filled[index] = tensor
        args, kwargs = tree_unflatten(filled, spec)
        results = tree_flatten(op(*args, **kwargs))[0]
        return tuple(x for x in results if isinstance(x, torch.Tensor))

    inputs = [leaves[i] for i in tensors]
    mode = FakeTensorMode(shape_env=ShapeEnv())
    shown = [mode.from_tensor(x, static_shapes=True) for x in inputs]
    with torch.set_grad_enabled(training), tracing(TracingContext(mode)):
        outputs = capture(one_call(call, inputs), shown, sink)(*inputs)
        if training:
            differentiate(outputs)


def prepared(leaf: Any, training: bool) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return leaf.detach().requires_grad_(training and leaf.requires_grad)


def one_call(function: Callable[..., Any], inputs: Sequence[Any]) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    names = [graph.placeholder(f"in_{i}") for i in range(len(inputs))]
    graph.output(graph.call_function(function, tuple(names)))
    return torch.fx.GraphModule({}, graph)


def differentiate(outputs: Sequence[torch.Tensor]) -> None:
    wanted = [x for x in outputs if x.requires_grad]
    if wanted:
        torch.autograd.backward(wanted, [torch.ones_like(x) for x in wanted])


def captured(name: str, op: Any, direction: str, samples: int) -> dict[str, Any]:
    """One line of the answer: the ops that the samples of an entry have together, and why there are none."""
    training = direction == "backward"
    dtype = next(d for d in DTYPES if d in op.supported_dtypes("cpu"))
    found: set[str] = set()
    refused = error = ""
    try:
        for sample in evenly(op.sample_inputs("cpu", dtype, requires_grad=training), samples):
            sink = Ops()
            run_sample(op.op, sample, training, sink)
            found |= sink.found
            refused = refused or sink.refused
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}".strip().splitlines()[0][:200]
    return line(name, direction, found, refused, error)


def evenly(samples: Any, count: int) -> list[Any]:
    """That many of the samples, the first among them, at even distances."""
    listed = list(itertools.islice(samples, 400))
    step = max(1, len(listed) // count)
    return listed[::step][:count]


def directions(op: Any) -> list[str]:
    """What an entry can be captured for, here on the CPU."""
    dtypes = [d for d in DTYPES if d in op.supported_dtypes("cpu")]
    if not dtypes:
        return []
    trains = op.supports_autograd and dtypes[0] in op.supported_backward_dtypes("cpu")
    return ["forward", "backward"] if trains else ["forward"]


def unseeded(op: Any, *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def main(samples: int, names: list[str]) -> None:
    """``list`` prints the entries; anything else captures those that are named."""
    warnings.simplefilter("ignore")
    invocations.wrapper_set_seed = unseeded  # no seed inside a graph
    entries = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in invocations.op_db}
    if names == ["list"]:
        print(json.dumps({name: directions(op) for name, op in entries.items()}))
        return
    for name in names:
        print(json.dumps({"begin": name}), flush=True)
        for direction in directions(entries[name]):
            torch.manual_seed(0)
            print(json.dumps(captured(name, entries[name], direction, samples)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
