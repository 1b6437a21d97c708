"""Finds faster schedules for the products and convolutions of a graph, each measured alone against the default."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import logging
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import Any, TypeAlias

import msgspec
import torch

from fairlead.ir import Builder, DType, Graph, Node, TensorType, Value, to_text
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import channels_last
from fairlead_tvm._database import Database, Found
from fairlead_tvm._layouts import Layout, input_layouts
from fairlead_tvm._lower import write
from fairlead_tvm._rules import full_name, wanted
from fairlead_tvm._schedule import DEFAULT, Schedule, moves

__all__ = ["chosen"]

_Arguments: TypeAlias = list[torch.Tensor]
_Program: TypeAlias = Callable[[_Arguments], torch.Tensor]

_log = logging.getLogger("fairlead.tvm")

_PRODUCTS = frozenset(map(full_name, ("linear", "mm", "addmm", "bmm", "baddbmm")))
_CONVOLUTION = full_name("convolution")
_TYPES = {DType.f32: torch.float32, DType.f64: torch.float64}
_TEMPLATES = ("_gemm.py", "_convolution.py", "_kernel.py", "_windows.py", "_tvm.py", "_schedule.py")
_ROUNDING = {torch.float32: 1e-4, torch.float64: 1e-12}
"""How far sums may be apart that are added up in another order, as a share of the largest."""
_TURN = 0.004
"""Seconds that are measured at a time."""
_FIRST, _AGAIN = 5, 11
"""Turns for a look, and for making sure."""
_CACHES, _MOST_COPIES = 1 << 26, 64
"""Bytes that no processor's last cache holds for one program, and of how many copies of a weight they are made."""
_FASTER = 0.98
"""What a schedule may take of the time of another that it replaces."""


@dataclass(slots=True)
class _Site:
    """Nodes that are the same: one as a graph of its own, the inputs of it that are packed, and where they all are."""

    graph: Graph
    node: int
    packed: frozenset[int]
    places: list[int] = field(default_factory=list)

    @property
    def work(self) -> float:
        """About how many multiplications: of a matrix product as many, and that for each place."""
        read = sorted((math.prod(_shape(i.value)) for i in self.graph.inputs), reverse=True)
        written = sum(math.prod(_shape(v)) for v in self.graph.output_values())
        return len(self.places) * math.sqrt(math.prod(read[:2]) * written)

    def __str__(self) -> str:
        shapes = (f"[{', '.join(map(str, i.value.tensor.shape))}]" for i in self.graph.inputs)
        return f"{self.graph.nodes[self.node].op} {' '.join(shapes)}"


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(d for d in value.tensor.shape if isinstance(d, int))


def chosen(
    graph: Graph, layouts: Mapping[int, Sequence[Layout]], *, threads: int, seconds: float
) -> dict[int, Schedule]:
    """The schedules of nodes, by their place in the graph: those that are known, after ``seconds`` of search."""
    sites = _sites(graph, layouts, threads)
    if not sites:
        return {}
    database = Database.named()
    found = database.read(sites)
    if seconds:
        found |= _search(sites, found, database, threads, seconds)
    return {place: f.schedule for key, f in found.items() for place in sites[key].places if f.schedule != DEFAULT}


def _sites(graph: Graph, layouts: Mapping[int, Sequence[Layout]], threads: int) -> dict[str, _Site]:
    found: dict[str, _Site] = {}
    for place, node in enumerate(graph.nodes):
        if node.op not in _PRODUCTS and node.op != _CONVOLUTION:
            continue
        if not all(_is_known(v) for v in (*node.operands(), *node.results) if v is not None):
            continue
        site = _alone(node, layouts)
        key = "\n".join((*_here(), f"{threads} threads", f"packed {sorted(site.packed)}", to_text(site.graph)))
        found.setdefault(key, site).places.append(place)
    return found


def _is_known(value: Value) -> bool:
    """Whether it can be made up: of a size that is known and not nothing."""
    return value.tensor.dtype in _TYPES and value.tensor.is_static and 0 not in value.tensor.shape


@functools.cache
def _here() -> tuple[str, ...]:
    """What a schedule is right for besides its node."""
    sources = (resources.files("fairlead_tvm").joinpath(name).read_bytes() for name in _TEMPLATES)
    templates = hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    return t.processor(), f"apache-tvm {metadata.version('apache-tvm')}", f"templates {templates}"


def _alone(node: Node, layouts: Mapping[int, Sequence[Layout]]) -> _Site:
    """The node as a graph; what a convolution reads and writes lies as it does between convolutions."""
    asked = next(iter(wanted(node)), None)
    weight = None if asked is None else node.args[asked[0]]
    is_packed = isinstance(weight, Value) and asked is not None and asked[1] in layouts.get(weight.id, ())
    b, given, args = Builder("alone"), dict[int, Value](), list[Any]()
    for at, argument in enumerate(node.args):
        if not isinstance(argument, Value):
            args.append(argument)
        elif node.op == _CONVOLUTION and at == 0:
            args.append(_turned(b, argument))
        else:
            if argument.id not in given:
                given[argument.id] = b.input(TensorType(argument.tensor.dtype, argument.tensor.shape))
            args.append(given[argument.id])
    result = b.op(node.op, *args)
    is_turned = node.op == _CONVOLUTION
    b.output(b.op("aten.permute.default", result, channels_last(result.tensor.rank)) if is_turned else result)
    graph = b.graph()
    packed = (i for i, item in enumerate(graph.inputs) if isinstance(weight, Value) and item.value is given[weight.id])
    return _Site(graph, int(is_turned), frozenset(packed) if is_packed else frozenset())


def _turned(b: Builder, value: Value) -> Value:
    """An input that lies with its channels last."""
    batch, channels, *places = value.tensor.shape
    lying = b.input(TensorType(value.tensor.dtype, (batch, *places, channels)))
    last = len(places) + 1
    return b.op("aten.permute.default", lying, (0, last, *range(1, last)))


def _search(
    sites: Mapping[str, _Site], known: Mapping[str, Found], database: Database, threads: int, seconds: float
) -> dict[str, Found]:
    """Try schedules until the time is over, of the nodes that take longest first; what is found is stored at once."""
    started, found = time.monotonic(), dict[str, Found]()
    with _bar(seconds) as show:
        for key, site in sorted(sites.items(), key=lambda item: -item[1].work):
            before = known.get(key, Found())
            if before.tried == len(moves(DEFAULT, threads)):
                continue
            if time.monotonic() - started >= seconds:
                break
            show(f"{len(found) + 1}/{len(sites)} {site}")
            found[key] = _Trial(site, threads, started + seconds).run(before)
            database.write(key, found[key])
            _log.debug("%s: %s", site, found[key])
    return found


class _Trial:
    """The search for one site, up to a moment of `time.monotonic`."""

    def __init__(self, site: _Site, threads: int, until: float) -> None:
        self._site, self._threads, self._until = site, threads, until
        self._clock = time.thread_time if threads == 1 else time.perf_counter
        self._layouts = input_layouts(site.graph, site.packed, wanted)
        self._given = itertools.cycle(_made_up(site.graph, self._layouts))
        self._calls = 1

    def run(self, before: Found) -> Found:
        """Change one choice after the other, and keep what is faster; what was tried before is not tried again."""
        best, written = before, [self._written(s) for s in {DEFAULT: 0, before.schedule: 0}]
        default, *others = map(self._program, written)
        fastest = others[0] if others else default
        self._calls = max(1, int(_TURN / max(self._time(default), 1e-9)))
        for tried in range(before.tried, len(moves(DEFAULT, self._threads))):
            candidate = moves(best.schedule, self._threads)[tried]
            module = self._written(candidate)
            is_new = not any(t.same(module, other) for other in written)
            written.append(module)
            program = self._working(module, default) if is_new else None
            ratio = None if program is None else self._ratio(program, fastest)
            if time.monotonic() >= self._until:
                break
            best = msgspec.structs.replace(best, tried=tried + 1)
            if program is not None and ratio is not None:
                best, fastest = Found(candidate, best.ratio * ratio, tried + 1), program
        return best

    def _written(self, schedule: Schedule) -> Any:
        return write(self._site.graph, self._layouts, {self._site.node: schedule}, threads=self._threads).module

    def _program(self, module: Any) -> _Program:
        main = t.runner(t.compiled(module))
        return lambda given: main(*given)[0]

    def _working(self, module: Any, default: _Program) -> _Program | None:
        """The program, where it compiles and says what the default says."""
        try:
            program = self._program(module)
            given = next(self._given)
            found, expected = program(given), default(given)
        except Exception as error:  # TVM's: the default has to be good enough then
            _log.debug("%s: TVM does not compile a schedule: %s", self._site, error)
            return None
        allowed = _ROUNDING[expected.dtype] * float(expected.abs().max())
        return program if torch.allclose(found, expected, rtol=0, atol=allowed) else None

    def _ratio(self, one: _Program, other: _Program) -> float | None:
        """The share of the other's time that one takes, None where it is not faster each time that it is measured."""
        found = 1.0
        for turns in (_FIRST, _AGAIN):
            ratios = [self._time(one) / self._time(other) for _ in range(turns) if time.monotonic() < self._until]
            if len(ratios) < turns or statistics.median(ratios) > _FASTER:
                return None
            found = statistics.median(ratios)
        return found

    def _time(self, program: _Program) -> float:
        started = self._clock()
        for _ in range(self._calls):
            program(next(self._given))
        return self._clock() - started


def _made_up(graph: Graph, layouts: Mapping[int, Sequence[Layout]]) -> list[_Arguments]:
    """Inputs with random numbers, the same each time, that lie as the program reads them.

    Weights come in as many copies as no cache holds: in a whole program others were read since.
    """
    generator, found = torch.Generator("cpu").manual_seed(0), list[list[torch.Tensor]]()
    for item in graph.inputs:
        dtype = _TYPES[item.value.tensor.dtype]
        made = torch.randn(_shape(item.value), generator=generator, dtype=dtype, device="cpu")
        lying = layouts.get(item.value.id)
        found += [[made]] if lying is None else [_copies(layout.array(made)) for layout in lying]
    count = max(map(len, found))
    return [[each[i % len(each)] for each in found] for i in range(count)]


def _copies(weight: torch.Tensor) -> list[torch.Tensor]:
    count = min(max(_CACHES // weight.nbytes, 1), _MOST_COPIES)
    return [weight.clone() for _ in range(count)]


@contextlib.contextmanager
def _bar(seconds: float) -> Iterator[Callable[[str], None]]:
    """A bar on stderr that fills up with the time, where a person looks at it; call what is given with what is next."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("tuning", total=seconds)
        yield lambda text: progress.update(task, completed=time.monotonic() - started, description=f"tuning {text}")
