"""Does the NumPy interpreter compute what torch computes, over torch's own samples of its ops?

Each sample is captured, forward and backward, and each graph runs three times: as AOTAutograd made it (eager), by
`fairlead.interpret.run`, and by `fairlead.numpy.run`. One line an entry of torch's database (OpInfo), and totals:

- agree: every output is equal (integers, booleans, and whatever only ops that the opset calls exact compute), or within
  some units in the last place of what NumPy has
- sensitive: further away, but no further than the result moves when the inputs are changed in their last place
- ties: places of equal elements, in an order that the op leaves open (`ties` is its comparison class in the opset)
- known: what torch is known to have otherwise, with a reason; the table is in ``oracle_known.py``, and a row of it that
  no longer explains anything fails the run
- refused: both interpreters refuse, as an op reads memory around an input: the inputs lie in memory of their own, with
  the strides that they have, since an array has no more than its elements
- drawn: the graph draws random numbers, so that only dtypes and shapes are compared
- differ: the rest; the line says where
- torch alone: the graph has an op that the opset gives to torch alone, of tiers linalg and special
- unsupported: NumPy lacks an op that the opset says it has

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

import torch
from oracle_compare import Run, difference, is_exact, slack, ties, to_numpy
from oracle_known import Known, completed, explanation, stale
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
from fairlead._torch_types import TORCH_DTYPES
from fairlead.errors import FairleadError
from fairlead.ir import DType, Graph, Kind, opset
from fairlead.passes import canonicalize, draws_random_numbers, recognize_composites

DTYPES = "f32,f64,i64,bool,bf16,c64"
READS_MEMORY = ("aten.as_strided.default", "aten.as_strided_scatter.default", "aten.view.dtype")


@dataclasses.dataclass
class Tally:
    """What came out, by kind of outcome, and the first lines about what is not as it should be."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    notes: list[str] = dataclasses.field(default_factory=list)
    ops: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    known: collections.Counter[Known] = dataclasses.field(default_factory=collections.Counter)

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
                expected = by_torch(graph, [*args, *constants])
                found = gm(*args)
                self.runs.append(Run(graph, inputs, [to_numpy(x) for x in found], expected))
                return found

            return call

        return compile_graph


def by_torch(graph: Graph, given: Sequence[Any]) -> list[Any] | Exception:
    """What the interpreter with torch makes of inputs that have nothing around them in memory."""
    if not any(n.op in READS_MEMORY for n in graph.nodes):
        return [to_numpy(x) for x in interpret.run(graph, given)]
    try:
        return [to_numpy(x) for x in interpret.run(graph, [alone(x) for x in given])]
    except (FairleadError, RuntimeError) as error:
        return error


def alone(x: Any) -> Any:
    """The tensor, with its strides, in memory that is zero but for its elements."""
    if not isinstance(x, torch.Tensor) or x.is_conj() or x.is_neg() or not x.numel():
        return x
    at = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(x.shape, x.stride(), strict=True):
        at = at[..., None] + torch.arange(size) * stride
    memory = x.new_zeros(int(at.max()) + 1)
    memory[at.reshape(-1)] = x.reshape(-1)
    return memory.as_strided(x.shape, x.stride())


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
    missing = [n for n in run.graph.nodes if not fairlead.numpy.supports(n.op)]
    if missing:
        lacks = f"lacks {', '.join(sorted({n.op for n in missing}))}"
        tally.add("unsupported" if any(is_promised(n.op) for n in missing) else "torch alone", lacks)
        return
    run = completed(run)
    try:
        found = fairlead.numpy.run(run.graph, run.inputs)
    except FairleadError as error:
        both = isinstance(run.torch, Exception)
        tally.add("refused" if both else "differ", f"{error.what} [{error.where.partition(': ')[2]}]")
        return
    tally.ops.update(n.op for n in run.graph.nodes)
    if any(draws_random_numbers(n.op) for n in run.graph.nodes):
        tally.add("drawn")
        return
    if isinstance(run.torch, Exception):
        tally.add("differ", f"torch refuses: {str(run.torch).splitlines()[0][:120]}")
        return
    judge_numbers(run, found, run.torch, tally)
    eager = difference(run.torch, run.eager)
    if eager:
        tally.add("eager differs", f"torch's interpreter and eager: {eager}")


def is_promised(op: str) -> bool:
    """Whether an op has a meaning without torch, as the opset has it."""
    spec = opset.spec(op)
    return spec is not None and "numpy" in spec.interpreters


def judge_numbers(run: Run, found: Sequence[Any], wanted: Sequence[Any], tally: Tally) -> None:
    gap = difference(found, wanted, exact=is_exact(run.graph))
    if not gap:
        tally.add("agree")
    elif ties(run, found, wanted):
        tally.add("ties")
    elif not difference(found, wanted, slack(run, found)):
        tally.add("sensitive", gap)
    elif row := explanation(run, found):
        tally.known[row] += 1
        tally.add("known", f"{row.op}: {row.reason}")
    else:
        ops = ",".join(n.op for n in run.graph.nodes)
        tally.add("differ", f"{gap} [{run.graph.kind}: {ops[:160]}]")


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
    total, clean = Tally(), 0
    lines: list[str] = []
    entries = [op for op in invocations.op_db if not options.names or full_name(op) in options.names]
    entries = [op for i, op in enumerate(entries) if i % parts == part]
    for op in entries:
        tally = entry(op, dtypes, options.samples, options.seconds)
        total.counts.update(tally.counts)
        total.ops.update(tally.ops)
        total.known.update(tally.known)
        if not options.samples and options.dtypes == DTYPES and not tally.counts["out of time"]:
            lines += stale(full_name(op), tally.known)
        clean += not any(tally.counts[k] for k in ("differ", "unsupported"))
        if options.json:
            print(json.dumps({"op": full_name(op), **tally.counts, "notes": tally.notes}), flush=True)
        else:
            print(f"{full_name(op):48} {dict(tally.counts)} {'; '.join(tally.notes[:3])}", flush=True)
    if not options.json:
        print(f"{len(entries)} entries, {clean} without difference or missing op; graphs: {dict(total.counts)}")
        print(f"{len(total.ops)} ops of the IR were run")
        for row, count in total.known.items():
            print(f"known: {count} graphs with {row.op} in {', '.join(row.dtypes)}: {row.reason}")
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if total.counts["differ"] or lines else 0


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}".rstrip(".")


if __name__ == "__main__":
    sys.exit(main())
