"""Writes a graph in jax's operations, at sizes that are known, and has XLA compile it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from fairlead.ir import Argument, DType, Graph, Node, ScalarType, TensorType, Value
from fairlead_openxla._call import Call, Program
from fairlead_openxla._images import ON_ELEMENTS, channels_last, gives_image
from fairlead_openxla._images import as_declared as image_as_declared
from fairlead_openxla._layouts import Layout, as_declared, stacks
from fairlead_openxla._numbers import Array, cast, jax_dtype
from fairlead_openxla._options import CompilerOption, OpenXLAOptions
from fairlead_openxla._rules import rules, wanted
from fairlead_openxla._settings import lowering
from fairlead_openxla._target import on_cpu

__all__ = ["Compiled", "Written", "compile_written", "write"]

_LOG = logging.getLogger("fairlead.openxla")

_TURN = (1, 0)

_EXACT: dict[str, CompilerOption] = {
    "xla_cpu_enable_fast_math": False,
    "xla_cpu_enable_fast_min_max": False,  # else a NaN is dropped
    "xla_allow_excess_precision": False,  # else a half is not rounded between two ops
}
_EXACT_ON_CUDA: dict[str, CompilerOption] = {
    "xla_gpu_enable_fast_min_max": False,
    "xla_allow_excess_precision": False,
}
_EIGEN: dict[str, CompilerOption] = {
    # YNNPACK, the default, runs products more slowly than Eigen, and convolutions several times so
    "xla_cpu_experimental_ynn_fusion_type": "",
}
_HEAPS: dict[str, CompilerOption] = {
    # what a call needs for itself is one piece of memory else; from 32 MiB on the C library gives a piece back to the
    # system, and each call faults its pages in anew
    "xla_multiheap_size_constraint_per_heap": 16 << 20,
}


@dataclass(frozen=True, slots=True)
class Written:
    """A graph in StableHLO. ``checks`` says what is wrong where an element of the last result is false.

    That result is one boolean on CUDA, where the host does not read it.
    """

    lowered: Any
    device: torch.device
    checks: tuple[tuple[type[Exception], str], ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """What XLA made of it."""

    run: Any
    checks: tuple[tuple[type[Exception], str], ...]

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """The results, computed. Raises what torch raises where an index is out of range."""
        results: Sequence[Array] = self.run(*arrays)
        for result in results:
            result.block_until_ready()
        if not self.checks:
            return results
        for held, (error, text) in zip(results[-1].tolist(), self.checks, strict=True):
            if not held:
                raise error(text)
        return results[:-1]


def write(
    graph: Graph,
    sizes: Mapping[str, int],
    layouts: Mapping[int, tuple[Layout, ...]],
    device: torch.device,
    *,
    tf32: bool = False,
) -> Written:
    """The graph for these values of symbols and integer inputs (``inN``), as a function of its tensor inputs.

    An input for which ``layouts`` has an entry, by its value, comes as the arrays of each layout in turn.
    """
    found: list[tuple[type[Exception], str]] = []

    def function(*arrays: Array) -> list[Array]:
        program = Program(sizes, stacks(graph))
        given = iter(arrays)
        for i, item in enumerate(graph.inputs):
            _give(program, item.value, sizes.get(f"in{i}"), layouts.get(item.value.id), given)
        for node in graph.nodes:
            _write(node, program)
        found[:] = [(error, text) for _, error, text in program.checks]
        results = [program.values[v.id] for v in graph.output_values()]
        if not found:
            return results
        held = _held([each for each, *_ in program.checks])
        return [*results, held if on_cpu() else jnp.all(held)]

    with lowering(device, tf32=tf32):
        declared = [s for item in graph.inputs for s in _declared(item.value, sizes, layouts.get(item.value.id))]
        lowered = jax.jit(function, keep_unused=True).lower(*declared)
    return Written(lowered, device, tuple(found))


def _held(checks: Sequence[Array]) -> Array:
    """Which of the checks hold, but for those after the first of a shape that does not: one loop for each shape.

    A recommender looks into dozens of tables, and a step of the program takes longer than to look at a few indices.
    """
    firsts: dict[tuple[int, ...], Array] = {}
    for place, holds in enumerate(checks):
        first = jnp.where(holds, np.int32(len(checks)), np.int32(place))
        firsts[holds.shape] = jnp.minimum(firsts[holds.shape], first) if holds.shape in firsts else first
    wrong = jnp.stack([jnp.min(first, initial=len(checks)) for first in firsts.values()])  # of none where it is empty
    return jnp.all(jnp.arange(len(checks)) != wrong[:, None], 0)


def _give(
    program: Program, value: Value, number: int | None, layouts: tuple[Layout, ...] | None, given: Iterator[Array]
) -> None:
    """Take an input's arrays. Of a weight that nobody reads whole, only its shape and dtype are known."""
    if isinstance(value.type, ScalarType):
        program.values[value.id] = number
    elif layouts is None:
        program.values[value.id] = next(given)
    else:
        (program.values[value.id],) = _declared(value, program.sizes, None)
        for layout in layouts:
            arrays = [next(given) for _ in layout.shapes(program.shape(value.tensor.shape))]
            program.placed[value.id, layout] = arrays
            if layout.is_whole:
                program.values[value.id] = jnp.transpose(arrays[0], np.argsort(layout.order).tolist())
            if layout == Layout(_TURN):
                program.turned[value.id] = arrays[0]


def _declared(value: Value, sizes: Mapping[str, int], layouts: tuple[Layout, ...] | None) -> list[jax.ShapeDtypeStruct]:
    if not isinstance(value.type, TensorType):
        return []
    shape, dtype = Program(sizes).shape(value.type.shape), jax_dtype(value.type.dtype)
    each = (as_declared(len(shape)),) if layouts is None else layouts
    return [jax.ShapeDtypeStruct(s, dtype) for layout in each for s in layout.shapes(shape)]


def _write(node: Node, program: Program) -> None:
    if not _has_elements(node, program):
        for used in filter(None, node.results):
            program.values[used.id] = jnp.zeros(program.shape(used.tensor.shape), jax_dtype(used.tensor.dtype))
        return
    first = node.results[0]
    is_image = on_cpu() and gives_image(node, program.images)
    call = Call(node, program, wanted(node) if on_cpu() else None, is_image=is_image)
    found = _of_image(call, program) if is_image else rules()[node.op].write(call, *map(program.argument, node.args))
    results = found if isinstance(found, tuple) else (found,)
    for result, value in zip(results, node.results, strict=False):
        if value is None:
            continue
        assert result is not None, f"the rule of {node.op} leaves out a result that is used"
        done, shape = _finished(result, value.tensor.dtype), program.shape(value.tensor.shape)
        assert done.shape == shape, f"{node.op} gives {done.shape}, not {shape}"
        program.values[value.id] = done
    if is_image and first is not None:
        program.images.add(first.id)
    if node.op == "aten.permute.default" and node.args[1] == _TURN:
        _turn(node, program)


def _of_image(call: Call, program: Program) -> Any:
    """What a rule gives for an image: one that is on elements is given its operands with channels last."""
    node, write = call.node, rules()[call.node.op].write
    given = list(map(program.argument, node.args))
    if node.op not in ON_ELEMENTS:
        return write(call, *given)
    rank = len(call.shape())
    turned = (channels_last(x, rank) if _is_tensor(arg) else x for arg, x in zip(node.args, given, strict=True))
    return image_as_declared(write(call, *turned))


def _is_tensor(arg: Argument) -> bool:
    return isinstance(arg, Value) and isinstance(arg.type, TensorType)


def _turn(node: Node, program: Program) -> None:
    """Note the transpose of a matrix, unless that is one itself."""
    value = node.args[0]
    assert isinstance(value, Value), "what is permuted is a tensor"
    if value.id not in program.turned:
        program.turned[node.result.id] = program.values[value.id]


def _has_elements(node: Node, program: Program) -> bool:
    """Results of no elements need no rule."""
    return any(0 not in program.shape(value.tensor.shape) for value in node.results if value is not None)


def _finished(result: Array, dtype: DType) -> Array:
    return cast(jnp.asarray(result), dtype)


def compile_written(written: Written, options: OpenXLAOptions) -> Compiled:
    """Compile, with the debug options that keep XLA exact and those that the caller gives.

    An option of ours that this release of XLA does not know is left out: it has not what the option turns off.
    """
    ours = _EXACT | _EIGEN | _HEAPS | _threads(options) if written.device.type == "cpu" else _on_cuda()
    while True:
        try:
            with lowering(written.device):
                run = written.lowered.compile(compiler_options=ours | options.compiler_options)
            return Compiled(run, written.checks)
        except Exception as error:  # jaxlib's own class has no public name
            unknown = [name for name in ours if name in str(error) and name not in options.compiler_options]
            if "No such compile option" not in str(error) or not unknown:
                raise
            _LOG.debug("this XLA has no option %s", unknown[0])
            del ours[unknown[0]]


def _on_cuda() -> dict[str, CompilerOption]:
    return _EXACT_ON_CUDA | {"xla_gpu_deterministic_ops": torch.are_deterministic_algorithms_enabled()}


def _threads(options: OpenXLAOptions) -> dict[str, CompilerOption]:
    one = options.threads == "one" or (options.threads == "torch" and torch.get_num_threads() == 1)
    return {"xla_cpu_multi_thread_eigen": False} if one else {}
