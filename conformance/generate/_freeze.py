"""One entry of PyTorch's database to frozen cases, each of which was run before it is kept."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import torch

from conformance.generate._capture import Call, Uncaptured, captured
from conformance.generate._classes import unfit, variants_of
from conformance.generate._samples import chosen, seed_everything
from conformance.generate._specify import specify, specify_backward
from fairlead import interpret
from fairlead.ir import DType, Graph, TensorType, fingerprint, from_bytes, module, to_bytes
from fairlead_conformance import Case, Failed, Level, Observation, Subject
from fairlead_conformance._families import opgrad, ops
from fairlead_conformance._families._variants import LAYOUTS
from fairlead_conformance._pack import Content, Drawn, Entry, made

__all__ = ["Frozen", "freeze"]

SHARES = {
    DType.f32: 10, DType.bf16: 2, DType.i64: 2, DType.f64: 1, DType.f16: 1, DType.i32: 1, DType.bool: 1, DType.u8: 1,
    DType.i8: 1, DType.i16: 1, DType.c64: 1,
}  # fmt: skip
"""How many samples of an entry are kept in each dtype; what other dtypes leave goes to the first."""

GRADIENTS = {DType.f32: 3, DType.bf16: 1, DType.f64: 1}
SEEDS = (0, 1, 2)
"""What is drawn has to do for all of these; the reference runs in full for the first."""

Made = tuple[Entry, Content]


class Frozen(msgspec.Struct):
    """What became of an entry: its cases, and for each reason how many samples were dropped."""

    cases: list[Made] = []
    dropped: dict[str, int] = {}


def freeze(name: str, op: Any) -> Frozen:
    """All cases of an entry."""
    dropped: collections.Counter[str] = collections.Counter()
    dtypes = [d for d in SHARES if _torch(d) in op.supported_dtypes("cpu")]
    left = sum(n for d, n in SHARES.items() if d not in dtypes)
    cases: list[Made] = []
    for dtype in dtypes:
        count = SHARES[dtype] + (left if dtype is dtypes[0] else 0)
        cases += _cases(name, op, dtype, count, False, dropped)
    if op.supports_autograd:
        for dtype, count in GRADIENTS.items():
            if _torch(dtype) in op.supported_backward_dtypes("cpu"):
                cases += _cases(name, op, dtype, count, True, dropped)
    return Frozen(_with_variants(cases), dict(sorted(dropped.items())))


def _torch(dtype: DType) -> torch.dtype:
    return interpret.torch_dtype(dtype)


def _cases(
    name: str, op: Any, dtype: DType, count: int, training: bool, dropped: collections.Counter[str]
) -> Iterator[Made]:
    """The cases of one dtype, numbered as they come; samples that make the same graph count once."""
    seed_everything(f"{name} {dtype} {training}")
    seen: set[str] = set()
    number = 0
    for sample in _samples(op, dtype, count, training, dropped):
        try:
            calls = captured(op.op, sample, training=training)
            if reason := next(filter(None, (unfit(call.graph) for call in calls)), ""):
                raise Uncaptured(reason)
            hashes = " ".join(fingerprint(call.graph) for call in calls)
            if hashes in seen:
                continue
            entry = _entry(name, dtype, number, calls)
            content = _sound(entry, calls)
        except Uncaptured as reason:
            dropped[str(reason).splitlines()[0][:120]] += 1
        except Exception as error:
            dropped[f"{type(error).__name__}: {error}".splitlines()[0][:120]] += 1
        else:
            seen.add(hashes)
            number += 1
            yield entry, content


def _samples(op: Any, dtype: DType, count: int, training: bool, dropped: collections.Counter[str]) -> list[Any]:
    try:
        references = dtype is DType.f32 and not training
        return chosen(op, _torch(dtype), count, requires_grad=training, with_references=references)
    except Exception as error:
        dropped[f"no samples: {type(error).__name__}: {error}".splitlines()[0][:120]] += 1
        return []


def _entry(name: str, dtype: DType, number: int, calls: Sequence[Call]) -> Entry:
    nodes = [n for call in calls for n in call.graph.walk()]
    elements = sum(x.numel() for call in calls for x in call.inputs if isinstance(x, torch.Tensor))
    training = len(calls) == 2
    return Entry(
        family="opgrad" if training else "ops",
        subject=name,
        dtype=dtype.value,
        number=number,
        level=Level.L3 if training else Level.L2,
        needs=("training",) if training else (),
        dtypes=tuple(sorted({d.value for call in calls for d in _dtypes(call.graph)})),
        ops=tuple(sorted({n.op for n in nodes})),
        cost=round(0.01 * len(calls) + 0.001 * len(nodes) + 1e-7 * elements, 4),
    )


def _dtypes(graph: Graph) -> Iterator[DType]:
    values = [i.value for i in graph.inputs]
    values += [r for n in graph.walk() for r in n.results if r is not None]
    yield from (v.type.dtype for v in values if isinstance(v.type, TensorType))


def _sound(entry: Entry, calls: Sequence[Call]) -> Content:
    """The case's content, with drawn values where those do. Raises `Uncaptured`."""
    data = to_bytes(module(*(call.graph for call in calls), producer={}))
    reason = ""
    for literal in (False, True):
        inputs = [specify(calls[0], literal=literal)]
        if len(calls) == 2:
            inputs.append(specify_backward(*calls))
        content = Content(data, tuple(inputs))
        reason = _flaw(content, entry.cases()[0], calls)
        if not reason:
            return content
    raise Uncaptured(reason)


def _flaw(content: Content, case: Case, calls: Sequence[Call]) -> str:
    """What is wrong with a case when values are drawn; empty where nothing is."""
    graph = from_bytes(content.module).graphs[0]
    run = interpret.to_fx(graph)
    finite = all(map(_is_finite, calls[0].outputs))
    try:
        for seed in SEEDS:
            found = run(*made(graph, content.inputs[0], name=case.id, seed=seed))
            if finite and not all(map(_is_finite, found)):
                return "drawn values have no finite results"
        seen = Observation()
        _runner(case)(content, case, Subject("eager", seed=SEEDS[0]), seen)
    except Failed as failure:
        return f"eager fails: {failure.check}"
    except Exception as error:
        return f"drawn values raise {type(error).__name__}"
    return "" if seen.compared else "rounding leaves its results open"


def _runner(case: Case) -> Callable[..., None]:
    return opgrad.run_content if case.family == "opgrad" else ops.run_content


def _is_finite(x: Any) -> bool:
    return not isinstance(x, torch.Tensor) or bool(x.isfinite().all())


def _with_variants(cases: list[Made]) -> list[Made]:
    """The cases, those that represent the entry with the variants that make sense for it."""
    found: list[Made] = []
    layouts, edges = _representatives(cases)
    for entry, content in cases:
        graph = from_bytes(content.module).graphs[0]
        names = [*(LAYOUTS if entry.id in layouts else ()), *(variants_of(graph) if entry.id in edges else ())]
        kept = tuple((n, Level.L2) for n in names if _variant_is_sound(entry, content, n))
        found.append((msgspec.structs.replace(entry, variants=kept), content))
    return found


def _variant_is_sound(entry: Entry, content: Content, variant: str) -> bool:
    case = msgspec.structs.replace(entry.cases()[0], id=f"{entry.id}~{variant}")
    seen = Observation()
    try:
        ops.run_content(content, case, Subject("eager", seed=SEEDS[0]), seen)
    except Exception:
        return False
    return seen.compared > 0


def _representatives(cases: list[Made]) -> tuple[set[str], set[str]]:
    """The cases with most to change: two for other layouts, and in some dtypes one each for edge values."""
    layouts: set[str] = set()
    edges: set[str] = set()
    for dtype in ("f32", "i64", "i32", "bf16"):
        own = [(_weight(content), e.id) for e, content in cases if (e.family, e.dtype) == ("ops", dtype)]
        ordered = [id_ for _, id_ in sorted(own, reverse=True)]
        layouts |= set(ordered[: 2 if dtype == "f32" else 0])
        edges |= set(ordered[:1])
    return layouts, edges


def _weight(content: Content) -> tuple[bool, int, int]:
    """How much its inputs leave to change: are they drawn, their highest rank, how many have more than one element."""
    graph = from_bytes(content.module).graphs[0]
    types = [i.value.type for i in graph.inputs if isinstance(i.value.type, TensorType)]
    full = [t for t in types if all(isinstance(d, int) and d > 1 for d in t.shape)]
    first = next((x for x in content.inputs[0] if not isinstance(x, int)), None)
    return isinstance(first, Drawn), max((t.rank for t in full), default=0), len(full)
