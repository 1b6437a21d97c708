"""A graph that Inductor compiles at its first call, and again where its sizes leave what the code was generated for."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch._dynamo.convert_frame import compile_lock
from torch._dynamo.source import ConstantSource
from torch._functorch import config as functorch_config
from torch._inductor import config as inductor_config
from torch._inductor import list_mode_options
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from fairlead.errors import ArtifactUnsupportedError, CompileError, FairleadError
from fairlead.interpret import in_clean_thread, to_fx, torch_dtype
from fairlead.ir import Graph, Role, ScalarType, TensorType, dims
from fairlead_inductor._exact import exact
from fairlead_inductor._expected import TRUSTED, Expected, trusting
from fairlead_inductor._layouts import Layouts, channels_last, laying_out, weighs_more_than_images
from fairlead_inductor._masks import Masks
from fairlead_inductor._order import before_convolutions
from fairlead_inductor._rounding import rounding
from fairlead_inductor._stored import noting_libraries, packed
from fairlead_inductor._trees import (
    Aligned,
    Kept,
    Recordings,
    admit_thread,
    compiler_on_cuda,
    records,
    without_looks_at_addresses,
)
from fairlead_inductor._unwrapped import Unwrapped
from fairlead_inductor._writes import Writes

if TYPE_CHECKING:
    from fairlead_inductor._backend import InductorOptions

if hasattr(os, "register_at_fork"):
    # torch forgets its processes that compile, and not its threads, which do not come along either: a child would wait
    os.register_at_fork(after_in_child=AsyncCompile.pool.cache_clear)


class _Variant(NamedTuple):
    """Generated code, which empties its list of inputs, and the condition on symbols under which it is right."""

    function: Callable[[list[Any]], Any]
    admits: Callable[[Sequence[int]], bool]
    values: Sequence[int]


class InductorExecutable:
    """A graph compiled by Inductor.

    Takes any strides, and lays out anew what does not lie as `Layouts` has it. Empties the list that it is called with
    when the code begins to run, which lets go of each input once it is read.

    ``module`` computes the graph, whose sizes are numbers, in other words than `to_fx`; it may hold tensors, and is
    changed in place.
    """

    baked: frozenset[int] = frozenset()
    fresh_outputs = True
    takes_parameters = True

    def __init__(self, graph: Graph, options: InductorOptions, module: torch.fx.GraphModule | None = None) -> None:
        self._masks = Masks(graph, stay=module is not None)
        graph = before_convolutions(self._masks.graph)
        self._graph = graph
        self._module = module
        devices = _devices(graph)
        cache = {"fx_graph_cache": False} if graph.symbols else {}  # an entry for one size is taken for all sizes
        layouts = {"layout_optimization": False} if weighs_more_than_images(graph) else {}
        trusted = TRUSTED if Expected.is_known(graph) else {}
        mode = list_mode_options(options.mode)
        self._config = {
            **layouts,
            **mode,
            **rounding(graph, on_cuda="cuda" in devices),
            **trusted,
            **options.config,
            **cache,
        }
        self._on_cuda = "cuda" in devices
        self._is_recorded = records(self._config, devices)
        self._variants: list[_Variant] = []
        self._libraries: set[str] = set()
        self._lock = threading.Lock()
        self.steady_strides = not graph.symbols
        weights = [i for i, item in enumerate(graph.inputs) if item.role in _WEIGHTS]
        others = [i for i in _tensors_on_cuda(graph) if i not in weights]
        self._stay = weights if self._is_recorded else [*weights, *others]
        is_whole = self._is_recorded and devices == {"cuda"} and not graph.symbols
        self._recordings = Recordings() if is_whole else None
        self._look_at_addresses(is_made=False)
        # a recording is made on inputs that lie elsewhere at the next call, unless they are weights
        self._writes = Writes(graph, weights if self._is_recorded else None)
        self.writes = bool(self._writes.places)
        self._layouts = Layouts(graph, self._writes.places.values())
        known = _known_by_address(graph, _steady(graph, self._is_recorded))
        self._expected = Expected(graph, self._layouts, known) if trusted else None
        copies = self._is_recorded and not options.lend_results
        self._kept = Kept(graph, self._writes.places) if copies else None
        self._sizes = [k for k, symbol in enumerate(graph.symbols) if symbol.source[1] is not None]

    def _look_at_addresses(self, *, is_made: bool) -> None:
        """Look at those of all inputs on CUDA in each call, or of those that are known by them: a recording is made."""
        steady = _steady(self._graph, self._is_recorded)
        moving = [i for i in _tensors_on_cuda(self._graph) if i not in steady]
        if is_made:
            steady, moving = _known_by_address(self._graph, steady), []
        self._steady, self._moving = (Aligned(len(self._graph.inputs), places) for places in (steady, moving))

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        if self._is_recorded:
            admit_thread()
        inputs = inputs if isinstance(inputs, list) else list(inputs)
        self._masks.show_as_bytes(inputs)
        try:
            results = self._masks.of_bytes(self._results(inputs))
        except Exception:
            self._masks.show_as_masks(inputs)
            raise
        return results if self._kept is None else self._kept(results)

    def dump(self) -> bytes:
        """What its C++ was compiled to, for `lay_out_libraries`.

        A graph that has not been called is compiled for that, unless the first call says how its inputs lie. On CUDA
        there is an `ArtifactUnsupportedError`.
        """
        if self._on_cuda:
            raise ArtifactUnsupportedError(
                "programs on CUDA are not stored",
                where=f"fairlead-inductor, graph @{self._graph.name}",
                next="compile anew in each process, where torch's own cache has their kernels",
            )
        with self._lock, compile_lock:
            if not self._variants and not self._graph.symbols and not self._layouts.waits:
                in_clean_thread(lambda: self._compiled_or_not(()))
            return packed(self._masks.given, self._libraries)

    def readable(self) -> Mapping[str, str]:
        """The code that Inductor generates, for each set of sizes so far that needed its own.

        It is generated anew: what comes out of torch's caches has none with it.
        """
        with self._lock, compile_lock:
            codes = in_clean_thread(lambda: [code for v in self._variants for code in self._code(v.values)])
        return {f"{number}.output_code.py": code for number, code in enumerate(codes)}

    def _code(self, values: Sequence[int]) -> list[str]:
        found: list[str] = []
        compiler = self._inner()

        def inner(*args: Any, **how: Any) -> Any:
            made = compiler(*args, **how)
            found.append(getattr(made, "source_code", ""))  # an empty graph has none
            return made

        with inductor_config.patch(force_disable_caches=True):
            self._function(values, inner)
        return found

    def _inner(self) -> Callable[..., Any]:
        inner = compiler_on_cuda(self._graph, self._stay) if self._on_cuda else compile_fx_inner
        if self._recordings is not None:
            inner = self._recordings.within(inner)
        if self._expected is not None:
            inner = trusting(inner)
        inner = laying_out(self._graph, self._writes.places, inner, is_recorded=self._is_recorded)
        if self._on_cuda and not self._graph.symbols:  # before results are laid out, whose strides it changes
            inner = channels_last(inner, turns_weights=self._is_recorded)
        return inner

    def _results(self, inputs: list[Any]) -> Sequence[Any]:
        values = [
            inputs[index] if axis is None else inputs[index].shape[axis]
            for index, axis in (s.source for s in self._graph.symbols)
        ]
        found = self._variant(values)
        if found is None:
            with self._lock, compile_lock:  # the state of torch's compilers is one for all threads
                found = self._variant(values)
                if found is None:
                    if not self._variants:
                        self._layouts.meet(inputs)
                    found = in_clean_thread(lambda: self._compiled_or_not(values))
        stayed = self._on_cuda and self._steady.have_stayed(inputs)
        came_so = self._fit(inputs, values, stayed)
        if self._on_cuda:
            self._align(inputs, stayed, came_so)
        written = self._writes.written(inputs)
        inputs += [values[k] for k in self._sizes]
        return self._writes.with_inputs(found.function(inputs), written)

    def _fit(self, inputs: list[Any], values: Sequence[int], stayed: bool) -> bool:
        """Have the inputs lie as the code takes them; an error where they cannot be what it is for.

        Whether they are known to have come so. ``stayed``: the steady ones lie where they lay when they did.
        """
        expected = self._expected
        if expected is not None and expected.are(inputs, stayed=stayed):
            return True
        self._layouts.fit(inputs, values)
        if expected is not None and not expected.are(inputs):
            expected.accept(inputs)
        return expected is None  # which compares none of them

    def _align(self, inputs: list[Any], stayed: bool, came_so: bool) -> None:
        """Copy inputs at odd addresses. One that was laid out anew lies in memory that may be another's next time."""
        if not stayed:
            self._steady.see_to(inputs, keep=came_so)
        if not self._moving.have_stayed(inputs):
            self._moving.see_to(inputs)

    def _variant(self, values: Sequence[int]) -> _Variant | None:
        for variant in self._variants:
            if variant.admits(values):
                return variant
        return None

    def _compiled_or_not(self, values: Sequence[int]) -> _Variant:
        """A variant; a `CompileError` where Inductor fails, so that core knows that nothing of the Part has run."""
        try:
            return self._compiled(values)
        except (FairleadError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise CompileError(
                f"Inductor raised {type(error).__name__}: {error}",
                where=f"torch {torch.__version__}; graph {self._graph.name} of {len(self._graph.nodes)} nodes",
                next="allow fallback to run the Part elsewhere",
            ) from error

    def _compiled(self, values: Sequence[int]) -> _Variant:
        with noting_libraries(self._libraries):
            function, env, symbols = self._function(values, self._inner())
        guards = env.produce_guards_expression(symbols) if symbols else None
        if self._recordings is not None and self._recordings.made:
            self._look_at_addresses(is_made=True)
        variant = _Variant(function, _condition(env, guards, _fixed(env, symbols)), tuple(values))
        self._variants.append(variant)
        return variant

    def _function(
        self, values: Sequence[int], inner: Callable[..., Any]
    ) -> tuple[Callable[[list[Any]], Any], ShapeEnv, list[Any]]:
        """Generated code, with the symbols and what holds of them in it."""
        env = ShapeEnv()
        mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=self._module is not None)
        symbols = {s.name: _symint(env, s.name, v) for s, v in zip(self._graph.symbols, values, strict=True)}
        fakes = [self._fake(mode, place, symbols) for place in range(len(self._graph.inputs))]
        written_out = exact(to_fx(self._graph) if self._module is None else self._module)
        module = _taking_sizes(self._writes.within(written_out), len(self._sizes))
        fakes += [symbols[self._graph.symbols[k].name] for k in self._sizes]
        first = without_looks_at_addresses if self._is_recorded else contextlib.nullcontext
        unwrapped = Unwrapped(inner, len(fakes), len(self._graph.outputs) - len(self._writes.places), first)
        with functorch_config.patch(enable_autograd_cache=False):  # its entries know nothing of an inner_compile
            function = compile_fx(module, fakes, inner_compile=unwrapped, config_patches=self._config)
        return unwrapped.function(cast("Callable[..., Any]", function)), env, list(symbols.values())

    def _fake(self, mode: FakeTensorMode, place: int, symbols: Mapping[str, Any]) -> Any:
        item = self._graph.inputs[place]
        type_ = item.value.type
        if isinstance(type_, ScalarType):
            return symbols[item.name]
        shape = [dims.evaluate(d, symbols) for d in type_.shape]
        with mode:
            return torch.empty_strided(
                shape,
                self._layouts.of(place, symbols),
                dtype=torch_dtype(type_.dtype),
                device=type_.device,
            )


def _taking_sizes(module: torch.fx.GraphModule, count: int) -> torch.fx.GraphModule:
    """The module with so many sizes for further inputs: AOTAutograd looks for each symbol among the inputs."""
    last = module.graph.find_nodes(op="placeholder", sort=True)[-1:]
    if count and last:
        with module.graph.inserting_after(last[0]):
            for k in reversed(range(count)):
                module.graph.placeholder(f"size_{k}")
        module.recompile()
    return module


def _devices(graph: Graph) -> set[str]:
    """The kinds of devices that the graph's inputs and results are on."""
    values = [*(i.value for i in graph.inputs), *(r for n in graph.nodes for r in n.results if r is not None)]
    return {v.type.device.partition(":")[0] for v in values if isinstance(v.type, TensorType)}


def _tensors_on_cuda(graph: Graph) -> list[int]:
    """The places of inputs that are tensors on a CUDA device."""
    types = [item.value.type for item in graph.inputs]
    return [i for i, t in enumerate(types) if isinstance(t, TensorType) and t.device.startswith("cuda")]


def _steady(graph: Graph, is_recorded: bool) -> list[int]:
    """The places of tensors on CUDA that mostly lie where they lay: weights, and what recordings have saved."""
    roles = [*_WEIGHTS, *((Role.saved,) if is_recorded else ())]
    return [i for i in _tensors_on_cuda(graph) if graph.inputs[i].role in roles]


_WEIGHTS = (Role.parameter, Role.buffer)

_GUARDS_STRIDES_OF_WEIGHTS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)
"""Before, Dynamo took a weight for the one that it knew, whatever its ``data`` was replaced by."""


def _known_by_address(graph: Graph, steady: Sequence[int]) -> list[int]:
    """Those of the steady ones that are as they were where they lie as they lay.

    The memory of a recording is that of one tensor at each step.
    """
    return [i for i in steady if _GUARDS_STRIDES_OF_WEIGHTS or graph.inputs[i].role not in _WEIGHTS]


def _condition(env: ShapeEnv, guards: str | None, fixed: Mapping[int, int]) -> Callable[[Sequence[int]], bool]:
    """Whether code generated under the guards is right for these values of the symbols."""
    if not guards and not fixed:
        return lambda values: True
    return lambda values: (
        all(values[i] == size for i, size in fixed.items())
        and (not guards or bool(env.evaluate_guards_expression(guards, list(values))))
    )


def _fixed(env: ShapeEnv, symbols: Sequence[Any]) -> dict[int, int]:
    """The symbols for which code was generated that is right for one value alone, and these values."""
    found = {i: env.replace(symbol.node.expr) for i, symbol in enumerate(symbols)}
    return {i: int(expression) for i, expression in found.items() if expression.is_number}


def _symint(env: ShapeEnv, name: str, value: int) -> Any:
    """A symbolic integer of its own, with the value of this call as its hint."""
    source = ConstantSource(name)
    symbol = env.create_symbol(
        value, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None, do_not_specialize_zero_one=True
    )
    return env.create_symintnode(symbol, hint=value, source=source)
