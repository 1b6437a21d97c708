"""Does the NumPy interpreter compute what torch computes, over torch's own samples of its ops?

Each sample is captured, forward and backward, and each graph runs three times: as AOTAutograd made it (eager), by
`fairlead.interpret.run`, and by `fairlead.numpy.run`. One line an entry of torch's database (OpInfo), and totals:

- agree: every output is equal (integers, booleans, and whatever only ops that the opset calls exact compute), or within
  some units in the last place of what NumPy has
- sensitive: further away, but no further than the result moves when the inputs are changed in their last place
- ties: places of equal elements, in an order that the op leaves open
- drawn: the graph draws random numbers, so that only dtypes and shapes are compared
- differ: the rest; the line says where
- unsupported: NumPy lacks an op of the graph

    python benchmarks/oracle.py [--dtypes f32,bf16] [--samples 4] [--json] [--seconds 20] [NAME ...]
    python benchmarks/oracle.py --models [NAME ...]

The second form takes whole models (``fairlead compare --list``), in inference and in training.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch._functorch.aot_autograd import aot_function
from torch.testing._internal import common_methods_invocations as invocations
from torch.utils._pytree import tree_flatten, tree_unflatten

import fairlead.numpy
from fairlead import interpret
from fairlead._capture import Captured, capture
from fairlead._capture._corrections import correct_types
from fairlead._capture._decompositions import table
from fairlead._capture._fx import Uncapturable, graph_of
from fairlead._models import CATALOG
from fairlead._models._load import load
from fairlead._torch_types import IR_DTYPES, TORCH_DTYPES
from fairlead.errors import FairleadError
from fairlead.ir import DType, Graph, Input, Kind, Output, Value, opset
from fairlead.numpy import numpy_dtype
from fairlead.passes import canonicalize, draws_random_numbers, recognize_composites

DTYPES = "f32,f64,i64,bool,bf16,c64"
EPS = {DType.f64: 2.0**-52, DType.c128: 2.0**-52, DType.f32: 2.0**-23, DType.c64: 2.0**-23, DType.f16: 2.0**-10,
       DType.bf16: 2.0**-7}  # fmt: skip
UNORDERED = {"aten.topk.default": 2, "aten.sort.default": 1, "aten.kthvalue.default": 2}
"""Ops that leave the order of equal elements open, and which argument names the dimension."""

RELATIVE, ABSOLUTE = 32, 8
"""Units in the last place: of the element, and of the largest element."""


def to_numpy(x: Any) -> Any:
    """A tensor's elements as an array of their own."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    dtype = numpy_dtype(IR_DTYPES[x.dtype])
    if x.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        raw = x.reshape(-1).view(torch.uint8 if x.itemsize == 1 else torch.int16).numpy()
        return raw.view(dtype).reshape(tuple(x.shape)).copy()
    return x.numpy().copy()


@dataclasses.dataclass
class Run:
    """A graph, what it was called with, and what eager and the interpreter with torch made of it."""

    graph: Graph
    inputs: list[Any]
    eager: list[Any]
    torch: list[Any]


@dataclasses.dataclass
class Tally:
    """What came out, by kind of outcome, and the first lines about what is not as it should be."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    notes: list[str] = dataclasses.field(default_factory=list)
    ops: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, outcome: str, note: str = "") -> None:
        self.counts[outcome] += 1
        if note and note not in self.notes:
            self.notes.append(note)


class Recorder:
    """Compilers for AOTAutograd that keep each graph, and run it on the way."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.reasons: list[str] = []

    def compiler(self, kind: Kind) -> Callable[..., Any]:
        def compile_graph(gm: torch.fx.GraphModule, example: Any) -> Any:
            try:
                read = graph_of(gm, str(kind), kind, ())
            except Uncapturable as reason:
                self.reasons.append(str(reason))
                return gm
            graph = recognize_composites(canonicalize(correct_types(read.graph)))
            constants = list(read.constants.values())

            def call(*args: Any) -> Any:
                inputs = [to_numpy(a) for a in (*args, *constants)]
                expected = [to_numpy(x) for x in interpret.run(graph, [*args, *constants])]
                found = gm(*args)
                self.runs.append(Run(graph, inputs, [to_numpy(x) for x in found], expected))
                return found

            return call

        return compile_graph


def record(call: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Recorder:
    """The graphs of a call and of its gradient, with what they were run on."""
    recorder = Recorder()
    compiled = aot_function(
        call,
        fw_compiler=recorder.compiler(Kind.forward),
        bw_compiler=recorder.compiler(Kind.backward),
        inference_compiler=recorder.compiler(Kind.inference),
        decompositions=table(),
    )
    found = tree_flatten(compiled(*tensors))[0]
    outputs = [x for x in found if isinstance(x, torch.Tensor) and x.requires_grad]
    inputs = [x for x in tensors if x.requires_grad]
    if outputs and inputs:
        torch.manual_seed(2)
        torch.autograd.grad(outputs, inputs, [torch.randn_like(x) for x in outputs], allow_unused=True)
    return recorder


def judge(run: Run, tally: Tally) -> None:
    missing = sorted({n.op for n in run.graph.nodes if not fairlead.numpy.supports(n.op)})
    if missing:
        tally.add("unsupported", f"lacks {', '.join(missing)}")
        return
    try:
        found = fairlead.numpy.run(run.graph, run.inputs)
    except FairleadError as error:
        tally.add("differ", f"{error.what} [{error.where.partition(': ')[2]}]")
        return
    tally.ops.update(n.op for n in run.graph.nodes)
    if any(draws_random_numbers(n.op) for n in run.graph.nodes):
        tally.add("drawn")
        return
    gap = difference(found, run.torch, exact=is_exact(run.graph))
    if not gap:
        tally.add("agree")
    elif ties(run, found):
        tally.add("ties")
    elif not difference(found, run.torch, slack(run, found)):
        tally.add("sensitive", gap)
    else:
        ops = ",".join(n.op for n in run.graph.nodes)
        tally.add("differ", f"{gap} [{run.graph.kind}: {ops[:160]}]")
    eager = difference(run.torch, run.eager)
    if eager:
        tally.add("eager differs", f"torch's interpreter and eager: {eager}")


def ties(run: Run, found: Sequence[Any]) -> bool:
    """Whether the only outputs that differ are places of equal elements, whose order an op leaves open."""
    values = {i.value.id: x for i, x in zip(run.graph.inputs, run.inputs, strict=True)}
    places = {n.results[1].id: n for n in run.graph.nodes if n.op in UNORDERED and n.results[1] is not None}
    for output, x, y in zip(run.graph.outputs, found, run.torch, strict=True):
        if not difference([x], [y]):
            continue
        node = places.get(getattr(output.value, "id", -1))
        source = values.get(next(node.operands()).id) if node else None
        if node is None or source is None:
            return False
        dim = node.args[UNORDERED[node.op]]
        if difference(*([picked(source, at, dim)] for at in (x, y))):
            return False
    return True


def picked(source: Any, at: Any, dim: int) -> Any:
    return np.take_along_axis(source, at if at.ndim == source.ndim else np.expand_dims(at, dim), dim)


def slack(run: Run, found: Sequence[Any]) -> list[Any]:
    """How far each output moves when each input and each node's results change in their last place."""
    rng = np.random.default_rng(0)
    moved = [np.zeros(np.shape(x)) for x in found]
    for _ in range(4):
        again = shaken_run(run, rng)
        for i, (x, y) in enumerate(zip(found, again, strict=True)):
            if isinstance(x, np.ndarray) and dtype_of(x) in EPS:
                gap = np.abs(widened(x) - widened(y))
                moved[i] = np.maximum(moved[i], np.where(np.isfinite(gap), gap, 0))
    return moved


def shaken_run(run: Run, rng: np.random.Generator) -> list[Any]:
    """The outputs, with everything on the way to them changed in its last place."""
    values = {i.value.id: shaken(x, rng) for i, x in zip(run.graph.inputs, run.inputs, strict=True)}
    for node in run.graph.nodes:
        operands = list({v.id: v for v in node.operands()}.values())
        results = [r for r in node.results if r is not None]
        one = Graph("one", Kind.inference, tuple(map(Input, operands)), (node,), tuple(map(Output, results)))
        found = fairlead.numpy.run(one, [values[v.id] for v in operands])
        values.update((r.id, shaken(x, rng)) for r, x in zip(results, found, strict=True))
    return [values[o.value.id] if isinstance(o.value, Value) else o.value for o in run.graph.outputs]


def shaken(x: Any, rng: np.random.Generator) -> Any:
    if not isinstance(x, np.ndarray) or dtype_of(x) not in EPS:
        return x
    up = np.unpackbits(np.frombuffer(rng.bytes((x.size + 7) // 8), np.uint8), count=x.size).reshape(x.shape)
    factors = np.array([1 - EPS[dtype_of(x)], 1 + EPS[dtype_of(x)]])
    return (widened(x) * factors[up]).astype(x.dtype)


def dtype_of(x: Any) -> DType:
    return next(d for d in DType if d.long_name == x.dtype.name)


def widened(x: Any) -> Any:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def is_exact(graph: Graph) -> bool:
    """Whether every op of a graph has one correct result, bit by bit."""
    specs = [opset.spec(node.op) for node in graph.nodes]
    return all(spec is not None and spec.comparison == "exact" for spec in specs)


def difference(
    found: Sequence[Any], wanted: Sequence[Any], moved: Sequence[Any] | None = None, *, exact: bool = False
) -> str:
    """How the outputs differ; empty where they do not. ``moved`` is how far each element may be off on top."""
    for index, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
            if x is not y and x != y:
                return f"output {index} is {x}, not {y}"
            continue
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"output {index} is {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        gap = _gap(x, y, 0.0 if moved is None else moved[index], 0 if exact else 1)
        if gap:
            return f"output {index} ({x.dtype.name}{list(x.shape)}) {gap}"
    return ""


def _gap(x: Any, y: Any, moved: Any, units: float) -> str:
    dtype = dtype_of(x)
    if dtype not in EPS:
        wrong = x != y
        return f"differs in {int(wrong.sum())} of {x.size}" if wrong.any() else ""
    if dtype.is_complex:
        return _gap(x.real.copy(), y.real.copy(), moved, units) or _gap(x.imag.copy(), y.imag.copy(), moved, units)
    a, b = widened(x), widened(y)
    # Beyond the largest number of the type, the last place decides between it and infinity.
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        scale = float(np.max(np.abs(a), where=finite, initial=0.0))
        bound = units * EPS[dtype] * (RELATIVE * np.abs(a) + ABSOLUTE * scale) + 16 * moved
        wrong = np.where(finite, np.abs(a - b) > bound, ~((a == b) | (np.isnan(a) & np.isnan(b))))
    if not wrong.any():
        return ""
    worst = np.unravel_index(np.argmax(np.where(wrong, np.nan_to_num(np.abs(a - b), nan=np.inf), -1)), a.shape)
    return f"differs in {int(wrong.sum())} of {x.size}: {a[worst]} and not {b[worst]}"


def samples(op: Any, dtype: torch.dtype, limit: int) -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    """What an entry is called with: a function of its tensors alone, and these."""
    grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), limit or None):
        flat, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]

        def call(*tensors: Any, flat: Any = flat, spec: Any = spec, places: Any = places) -> Any:
            full = list(flat)
            for place, tensor in zip(places, tensors, strict=True):
                full[place] = tensor
            first, args, kwargs = tree_unflatten(full, spec)
            return op.op(first, *args, **kwargs)

        yield call, [flat[i] for i in places]


def entry(op: Any, dtypes: Sequence[torch.dtype], limit: int, seconds: float) -> Tally:
    tally, end = Tally(), time.monotonic() + seconds
    for dtype in dtypes:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        try:
            for call, tensors in samples(op, dtype, limit):
                if time.monotonic() > end:
                    tally.add("out of time")
                    break
                sample(call, tensors, tally)
        except Exception as error:
            tally.add("no sample", f"{type(error).__name__}: {str(error)[:120]}")
    return tally


def sample(call: Callable[..., Any], tensors: Sequence[torch.Tensor], tally: Tally) -> None:
    try:
        recorder = record(call, tensors)
    except Exception as error:
        tally.add("uncaptured", f"not captured: {type(error).__name__}: {str(error).splitlines()[0][:120]}")
        return
    for reason in recorder.reasons:
        tally.add("uncaptured", f"not captured: {reason[:120]}")
    for run in recorder.runs:
        judge(run, tally)


def unseeded(op: Any, *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


class Sink:
    """Takes the graphs of a model, and runs them as `Recorder` does."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        graph = recognize_composites(canonicalize(captured.graph))
        constants = list(captured.constants.values())

        def call(args: list[Any]) -> list[Any]:
            given = [*args, *constants]
            args.clear()
            inputs = [to_numpy(a) for a in given]
            found = interpret.run(graph, given)
            arrays = [to_numpy(x) for x in found]
            self.runs.append(Run(graph, inputs, arrays, arrays))
            return list(found)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        raise RuntimeError(f"{kind} graph: {reason}")


def model_runs(name: str, training: bool) -> list[Run]:
    """The graphs of a model, run once."""
    model = load(name, training=training)
    sink = Sink()
    torch._dynamo.reset()
    compiled = torch.compile(model.module, backend=lambda gm, inputs: capture(gm, inputs, sink))
    with torch.set_grad_enabled(training):
        found = compiled(*model.args, **model.kwargs)
        if training:
            loss = found["loss"] if isinstance(found, dict) and "loss" in found else tree_flatten(found)[0][0].sum()
            loss.backward()
    return sink.runs


def report_models(names: Sequence[str]) -> bool:
    good = True
    for name in names:
        for training in (False, True):
            tally, seconds = Tally(), 0.0
            for run in model_runs(name, training):
                start = time.perf_counter()
                judge(run, tally)
                seconds += time.perf_counter() - start
            nodes = sum(tally.ops.values())
            what = "training" if training else "inference"
            notes = "; ".join(tally.notes[:3])
            print(f"{name:10} {what:10} {nodes:5} nodes {seconds:6.1f} s {dict(tally.counts)} {notes}", flush=True)
            good &= not tally.counts["differ"] and not tally.counts["unsupported"]
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries of OpInfo; all of them if none is given")
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--samples", type=int, default=4, help="of each entry and dtype; 0 for all")
    parser.add_argument("--seconds", type=float, default=60, help="that an entry may take")
    parser.add_argument("--json", action="store_true", help="one JSON line an entry")
    parser.add_argument("--part", default="0/1", help="which part of the entries, such as 1/4 for the second quarter")
    parser.add_argument("--models", action="store_true", help="whole models instead; all bundled ones if none is named")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.models:
        return 0 if report_models(options.names or list(CATALOG)) else 1
    invocations.wrapper_set_seed = unseeded  # it breaks graphs
    dtypes = [TORCH_DTYPES[DType(name)] for name in options.dtypes.split(",")]
    part, parts = map(int, options.part.split("/"))
    total, covered, clean = Tally(), Tally(), 0
    entries = [op for op in invocations.op_db if not options.names or full_name(op) in options.names]
    entries = [op for i, op in enumerate(entries) if i % parts == part]
    for op in entries:
        tally = entry(op, dtypes, options.samples, options.seconds)
        total.counts.update(tally.counts)
        covered.ops.update(tally.ops)
        clean += not any(tally.counts[k] for k in ("differ", "unsupported"))
        if options.json:
            print(json.dumps({"op": full_name(op), **tally.counts, "notes": tally.notes}), flush=True)
        else:
            print(f"{full_name(op):48} {dict(tally.counts)} {'; '.join(tally.notes[:3])}", flush=True)
    if not options.json:
        print(f"{len(entries)} entries, {clean} without difference or missing op; graphs: {dict(total.counts)}")
        print(f"{len(covered.ops)} ops of the IR were run")
    return 0 if not total.counts["differ"] else 1


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}".rstrip(".")


if __name__ == "__main__":
    sys.exit(main())
