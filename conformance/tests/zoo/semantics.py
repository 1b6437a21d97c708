"""Right numbers in the wrong memory, at the wrong time, or with something else changed."""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.tests.engine.faulty import Faulty, FaultyExecutable, Run, honest
from conformance.tests.zoo._fault import Kind, Reference
from fairlead.ir import Graph

KIND = Kind("semantics")
results, backend = KIND.results, KIND.backend

GRAPH = ("graph/one_node/*", "graph/inputs_of_one_shape/*", "graph/weights/*", "graph/odd_sizes/*", "graph/*")


def preparing(prepare: Any, **capabilities: Any) -> Faulty:
    return Reference(prepare=prepare, **capabilities)


@backend(*GRAPH, "semantics/first-result-is-kept/*", sole="first-result-kept")
def the_first_result_is_overwritten():
    """All calls write their results into the same memory (seen in vendors' integrations)."""

    def prepare(graph: Graph) -> Run:
        memory: dict[Any, torch.Tensor] = {}

        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            found = honest(graph, inputs)
            return [memory.setdefault((i, r.shape, r.dtype), r.clone()).copy_(r) for i, r in enumerate(found)]

        return run

    return preparing(prepare)


@results(*GRAPH, sole="inputs")
def an_input_is_written(found, inputs):
    """The first input is used as scratch memory."""
    for x in inputs:
        if isinstance(x, torch.Tensor) and x.numel() and x.is_floating_point() and 0 not in x.stride():
            x.numpy().reshape(-1)[0:1] += 1 if x.is_contiguous() else 0
            if not x.is_contiguous():
                x.numpy()[(0,) * x.dim()] += 1
            break
    return found


@results("graph/one_node/*", "graph/chain/*", "graph/*", sole="aliases")
def the_results_share_memory(found, inputs):
    """Results, or an input and a result of one shape, are in the same memory."""
    for i, r in enumerate(found):
        for x in inputs:
            if isinstance(x, torch.Tensor) and x.shape == r.shape and x.dtype == r.dtype and r.numel():
                return [*found[:i], x.view_as(x), *found[i + 1 :]]
    return found


@results("graph/*outputs*", "graph/*", sole="results")
def a_result_is_missing(found, inputs):
    """The last result is left out."""
    return found[:-1]


@results("graph/*outputs*", "graph/*", "lifecycle/the-same-with-results-exchanged/*")
def results_in_the_reverse_order(found, inputs):
    """The results come in the reverse order."""
    return found[::-1]


@results(*GRAPH, sole="shape")
def a_dimension_too_many(found, inputs):
    """Each result has a dimension of one in front."""
    return [r[None] for r in found]


@results(*GRAPH, sole="dtype")
def results_in_float64(found, inputs):
    """Results of float32 are float64."""
    return [torch.from_numpy(r.numpy().astype("f8")) if r.dtype is torch.float32 else r for r in found]


@results("graph/mixed_dtypes/*", "ops/sum/i32/*", "ops/cumsum/i32/*")
def results_of_integers_in_32_bits(found, inputs):
    """64-bit integers come back in 32 bits."""
    return [torch.from_numpy(r.numpy().astype("i4")) if r.dtype is torch.int64 else r for r in found]


@results("directed/a-million-*", "ops/sum/f32/*", *GRAPH)
def other_bits_at_every_call(found, inputs):
    """Sums are in another order at every call, and so are their last bits."""
    factor = 1 + random.SystemRandom().choice((0, 1)) * 2.0**-23
    return [
        torch.from_numpy(r.numpy() * r.numpy().dtype.type(factor)) if r.dtype is torch.float32 else r for r in found
    ]


@results("semantics/inputs-of-any-strides/*", sole="inference-tensor")
def results_that_autograd_refuses(found, inputs):
    """Results are made in inference mode, and take part in no autograd afterwards."""
    with torch.inference_mode():
        return [torch.from_numpy(r.numpy()) if r.dtype is not torch.bfloat16 else r for r in found]


@results("semantics/inputs-of-any-strides/*", sole="requires-grad")
def results_that_need_gradients(found, inputs):
    """Results are leaves that need gradients, in calls that need none."""
    return [r.requires_grad_() if r.is_floating_point() else r for r in found]


@backend("semantics/constants-inside-of-the-program/*", "semantics/inputs-keep-their-order/*", sole="strides")
def inputs_are_turned():
    """Square inputs are left transposed."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        for x in inputs:
            if isinstance(x, torch.Tensor) and x.dim() == 2 and x.shape[0] == x.shape[1] > 1:
                x.t_()
        return found

    return Reference(run)


@backend("ops/tanh/f32/*", sole="repeats")
def other_last_bits_at_every_second_call():
    """Every second call rounds the other way."""
    turns = itertools.count()

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        factor = 1 + next(turns) % 2 * 2.0**-23
        return [torch.from_numpy(r.numpy() * r.numpy().dtype.type(factor)) for r in honest(graph, inputs)]

    return Reference(run)


def _state(name: str, change: Any) -> None:
    """A backend that leaves something of the process changed."""

    def make() -> Faulty:
        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            change()
            return honest(graph, inputs)

        return Reference(run)

    make.__name__ = name.replace(" ", "_")
    make.__doc__ = f"Running leaves {name}."
    KIND.backend("graph/one_node/*", sole="state")(make)


_state("another default dtype", lambda: torch.set_default_dtype(torch.float64))
_state("another number of threads", lambda: torch.set_num_threads(3))
_state("deterministic algorithms switched on", lambda: torch.use_deterministic_algorithms(True))
_state("a variable in the environment", lambda: os.environ.update(ACME_CALLS=str(random.SystemRandom().random())))
_state("the random state moved", lambda: torch.default_generator.manual_seed(random.SystemRandom().getrandbits(32)))
_state("Pythons random state moved", lambda: random.random())
_state("another signal handler", lambda: signal.signal(signal.SIGTERM, lambda *_: None))
_state("denormals flushed", lambda: torch.set_flush_denormal(True))


def _weights(change: Any) -> Faulty:
    """A backend that holds weights, whose executable gets ``change`` as its refit."""

    class Holding(Reference):
        def compile(self, graph: Graph, options: Any, constants: Mapping[int, torch.Tensor], /) -> FaultyExecutable:
            made = super().compile(graph, options, {i: t.clone() for i, t in constants.items()})
            if made.baked:
                change(made)
            return made

    return Holding(bakes_constants=True, refits=True)


def _holding() -> Faulty:
    return Reference(bakes_constants=True, refits=True)


@backend("graph/weights/f32/s000", like=_holding, sole="refitted")
def stale_weights():
    """New weights are taken note of and not used (seen in vendors' integrations)."""
    return _weights(lambda made: setattr(made, "refit", lambda constants: None))


@backend("graph/weights/f32/s000", like=lambda: Reference(bakes_constants=True), sole="recompiled")
def weights_of_another_graph():
    """Weights are found again by their shapes, which those of an earlier graph have too."""
    kept: dict[Any, torch.Tensor] = {}

    class Caching(Reference):
        def compile(self, graph: Graph, options: Any, constants: Mapping[int, torch.Tensor], /) -> FaultyExecutable:
            held = {i: kept.setdefault((i, t.shape, t.dtype), t.clone()) for i, t in constants.items()}
            return super().compile(graph, options, held)

    return Caching(bakes_constants=True)


@backend("graph/weights/*", like=_holding, sole="constants")
def constants_are_written():
    """Weights are laid out anew in the memory that was given."""

    class Writing(Reference):
        def compile(self, graph: Graph, options: Any, constants: Mapping[int, torch.Tensor], /) -> FaultyExecutable:
            made = super().compile(graph, options, {i: t.clone() for i, t in constants.items()})
            for t in constants.values():
                t.detach().numpy().reshape(-1)[:1] += 1
            return made

    return Writing(bakes_constants=True)


@backend("graph/weights/*", like=_holding, sole="baked")
def more_is_baked_than_was_given():
    """It says to hold inputs that were not offered."""

    class Greedy(Reference):
        def compile(self, graph: Graph, options: Any, constants: Mapping[int, torch.Tensor], /) -> FaultyExecutable:
            made = super().compile(graph, options, constants)
            if constants:
                made.baked = frozenset(range(len(graph.inputs) + 1))
            return made

    return Greedy(bakes_constants=True)


def _contiguous(x: Any) -> Any:
    """The memory of a tensor read as if it were row-major."""
    if not isinstance(x, torch.Tensor) or x.is_contiguous() or not x.numel():
        return x
    return torch.from_numpy(x.numpy().base.reshape(-1)[: x.numel()].reshape(x.shape)) if _owns(x) else x


def _owns(x: torch.Tensor) -> bool:
    return x.untyped_storage().nbytes() >= x.numel() * x.itemsize and x.dtype is not torch.bfloat16


@backend("graph/*~transposed", "graph/*~stepped", "semantics/inputs-of-any-strides/*", "ops/add/f32/*~transposed")
def strides_of_inputs_are_ignored():
    """Inputs are read as if they were row-major."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        read = []
        for x in inputs:
            if isinstance(x, torch.Tensor) and not x.is_contiguous() and x.numel():
                row_major = [1] * x.dim()
                for d in range(x.dim() - 2, -1, -1):
                    row_major[d] = row_major[d + 1] * x.shape[d + 1]
                room = x.untyped_storage().nbytes() // x.itemsize - x.storage_offset()
                x = x.as_strided(x.shape, row_major) if room >= x.numel() else x
            read.append(x)
        return honest(graph, read)

    return Reference(run)


@backend("graph/*~offset", "ops/add/f32/*~offset", "ops/mul/f32/*~offset")
def offsets_of_inputs_are_ignored():
    """Inputs are read from the beginning of their memory."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return honest(
            graph,
            [x.as_strided(x.shape, x.stride(), 0) if isinstance(x, torch.Tensor) else x for x in inputs],
        )

    return Reference(run)


@backend("semantics/a-batch-that-changes/*", "semantics/a-length-that-grows/*", "graph/*symbol*", "graph/*")
def symbols_frozen_at_the_first_size():
    """What was computed for the first size of a symbol is given for all."""

    def prepare(graph: Graph) -> Run:
        first: list[Any] = []

        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            found = honest(graph, inputs)
            if not graph.symbols:
                return found
            if not first:
                first.extend(r.shape for r in found)
            return [
                r.reshape(-1)[: s.numel()].reshape(s) if r.numel() >= s.numel() else r
                for r, s in zip(found, first, strict=True)
            ]

        return run

    return preparing(prepare)


@backend("semantics/batches-of-none-and-of-one/*", "graph/*empty*", "graph/*", "semantics/results-of-no-elements*")
def no_elements_are_refused_at_run_time():
    """Tensors without elements raise when they come."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        if any(isinstance(x, torch.Tensor) and not x.numel() for x in inputs):
            raise NotImplementedError("tensors without elements")
        return honest(graph, inputs)

    return Reference(run)


@backend("graph/*", "ops/add/f32/*")
def sizes_of_one_are_squeezed():
    """Dimensions of one are dropped from inputs and from results."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return [r.reshape([n for n in r.shape if n != 1]) for r in honest(graph, inputs)]

    return Reference(run)


@backend("graph/*", "semantics/float64-is-not-narrowed/*", "ops/add/f64/*", "ops/exp/f64/*")
def float64_is_narrowed():
    """What is float64 passes through float32."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        return [torch.from_numpy(r.numpy().astype("f4").astype("f8")) if r.dtype is torch.float64 else r for r in found]

    return Reference(run)


@backend(
    "semantics/an-input-written-in-place/*",
    "semantics/one-bias-written-in-place/*",
    "semantics/a-buffer-counts-the-calls/*",
    "graph/*",
)
def writes_are_lost():
    """What is added in place stays as it was (seen in vendors' integrations: a lost ``add_``)."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        given = {item.value.id: x for item, x in zip(graph.inputs, inputs, strict=True)}
        sums = {n.results[0].id: n.args[0] for n in graph.nodes if n.op == "aten.add.Tensor" and n.results[0]}
        kept = []
        for output, r in zip(graph.outputs, found, strict=True):
            source = sums.get(getattr(output.value, "id", -1))
            was = given.get(getattr(source, "id", -1))
            kept.append(was.clone() if isinstance(was, torch.Tensor) and was.shape == r.shape else r)
        return kept

    return Reference(run)
