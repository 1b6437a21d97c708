"""Whether gradients survive capture and decomposition: ``python benchmarks/gradient_parity.py [MODEL ...]``.

Each of 24 architectures is captured, decomposed for a backend that keeps no composite and draws no random numbers, and
interpreted. Outputs, gradients and updated buffers are compared with those of the model in float64, and so are
eager's: ours may be off by four times as much as eager's, and by one rounding of the mode's dtype. Where eager itself
is far off, the row fails: it would show nothing. In train mode dropout is on, with the same seed everywhere: the masks
are the same in float64, and the norms use and update their statistics.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import architectures
import torch
from torch.utils._pytree import tree_leaves

import fairlead
from fairlead._accuracy._float64 import Widened
from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Node
from fairlead.registry import registry

__all__ = ["MODES", "Base", "Row", "compare"]

Tensors = dict[str, torch.Tensor]

MODES = {"eval": torch.float32, "train": torch.float32, "autocast": torch.bfloat16}
"""Each mode with the dtype that most of it computes in."""

FAR_OFF = {"eval": 1e-4, "train": 1e-4, "autocast": 0.2}
"""The error of eager from which on a comparison with it shows nothing."""

_SET_BY_MODEL = {"input_values"}
"""Inputs of which the model itself says, in training, whether they have a gradient (Wav2Vec2)."""

FACTOR = 4.0
"""How many times eager's own error ours may be."""


class Base:
    """A backend that runs base ops with the interpreter, and takes note of the graphs it is given."""

    name = "base"
    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(
        devices=("cpu",), dtypes=tuple(DType), training=True, dynamic_shapes=True, bakes_constants=False, keeps=()
    )

    def __init__(self) -> None:
        self.graphs: list[Graph] = []

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, torch.Tensor], /) -> Any:
        self.graphs.append(graph)
        return _Interpreted(to_fx(graph).forward)


class _Interpreted:
    baked: frozenset[int] = frozenset()
    fresh_outputs = False

    def __init__(self, run: Callable[..., Sequence[torch.Tensor]]) -> None:
        self._run = run

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        return list(self._run(*inputs))


class Row(NamedTuple):
    """One model in one mode: what was compiled, and the largest error of a tensor relative to what is allowed.

    ``ours`` and ``eager`` are the errors of ``worst``, the tensor that comes closest to its limit.
    """

    model: str
    mode: str
    graphs: int
    nodes: int
    worst: str
    ours: float
    eager: float
    limit: float
    passed: bool
    ops: frozenset[str]


def compare(name: str, mode: str) -> Row:
    """Run a model in eager, through the base-only backend, and in float64."""
    module, inputs = architectures.build(name, dropout=mode == "train")
    module.train(mode == "train")
    wide = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
    exact = _exact(_widened(module), wide)
    eager = _results(copy.deepcopy(module), inputs, mode, lambda m: m)
    backend = Base()
    with _registered(backend):
        ours = _results(module, inputs, mode, lambda m: fairlead.compile(m, backend="base", max_fallback=0))
    return _judged(name, mode, backend.graphs, exact, eager, ours)


def _widened(module: torch.nn.Module) -> torch.nn.Module:
    """The model in float64, its experts one by one: the grouped product has no float64 kernel."""
    wide = copy.deepcopy(module).double()
    if hasattr(wide.config, "_experts_implementation"):
        wide.config._experts_implementation = "eager"  # type: ignore[union-attr]
    return wide


def _judged(name: str, mode: str, graphs: list[Graph], exact: Tensors, eager: Tensors, ours: Tensors) -> Row:
    if not exact.keys() == eager.keys() == ours.keys():
        raise AssertionError(f"other tensors than eager's: {sorted(ours.keys() ^ eager.keys())}")
    floor = torch.finfo(MODES[mode]).eps
    scale = _scales(exact)
    rows = []
    for key, value in exact.items():
        mine, theirs = ((x[key].double() - value).norm().item() / scale[key] for x in (ours, eager))
        limit = FACTOR * theirs + floor
        rows.append((mine / limit if mine == mine else float("inf"), key, mine, theirs, limit))
    ratio, worst, mine, theirs, limit = max(rows)
    nodes = [n for g in graphs for n in g.nodes]
    ops = frozenset(n.op for n in nodes)
    passed = ratio <= 1 and all(theirs < FAR_OFF[mode] for *_, theirs, _ in rows)
    return Row(name, mode, len(graphs), len(nodes), worst, mine, theirs, limit, passed, ops)


def _scales(exact: Tensors) -> dict[str, float]:
    """The size of each tensor, of gradients not less than a thousandth of the largest one: the rest is rounding."""
    norms = {k: v.double().norm().item() for k, v in exact.items()}
    largest = max((v for k, v in norms.items() if k.startswith("grad ")), default=0.0)
    return {k: max(v, 1e-3 * largest if k.startswith("grad ") else 0.0) or 1.0 for k, v in norms.items()}


def _exact(module: torch.nn.Module, inputs: Tensors) -> Tensors:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Widened():
            return _results(module, inputs, "exact", lambda m: m)
    finally:
        torch.set_default_dtype(default)


def _results(
    module: torch.nn.Module, inputs: Tensors, mode: str, prepare: Callable[[torch.nn.Module], Callable[..., Any]]
) -> Tensors:
    """Outputs, gradients of parameters and of inputs, and buffers after one step."""
    given = {k: v.clone().requires_grad_(v.is_floating_point() and k not in _SET_BY_MODEL) for k, v in inputs.items()}
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast"):
        out = prepare(module)(**given)
    outputs = [x for x in tree_leaves(list(out.values())) if isinstance(x, torch.Tensor) and x.is_floating_point()]
    _loss(outputs).backward()
    found = {f"output {i}": x.detach() for i, x in enumerate(outputs)}
    leaves = {**dict(module.named_parameters()), **given}
    found.update((f"grad {k}", v.grad) for k, v in leaves.items() if v.grad is not None)
    found.update((f"buffer {k}", v) for k, v in module.named_buffers() if v.is_floating_point())
    return found


def _loss(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """A sum with other weights for each element: of a norm's or a softmax's result, plain sums have no gradient."""
    total = torch.zeros((), dtype=torch.float64)
    for x in outputs:
        if x.requires_grad:
            weights = torch.arange(x.numel()).double().sin().view(x.shape)
            total = total + (x.double() * weights).sum()
    return total


@contextlib.contextmanager
def _registered(backend: Base) -> Iterator[None]:
    torch._dynamo.reset()
    registry.register(backend)
    try:
        yield
    finally:
        registry.unregister(backend.name)
        torch._dynamo.reset()


def _line(row: Row, seconds: float) -> str:
    return (
        f"{row.model:12} {row.mode:9} {row.graphs:4} {row.nodes:6} {row.ours:9.1e} {row.eager:9.1e} {row.limit:9.1e} "
        f"{'pass' if row.passed else 'FAIL'}  {row.worst}  ({seconds:.0f} s)"
    )


def main() -> int:
    """Print the table; the exit status is 1 where a row fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(architectures.ARCHITECTURES)}")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(
        f"{'model':12} {'mode':9} {'grph':>4} {'nodes':>6} {'ours':>9} {'eager':>9} {'limit':>9} result, worst tensor"
    )
    failed, ops = [], frozenset[str]()
    for name in arguments.models or architectures.ARCHITECTURES:
        for mode in arguments.modes:
            started = time.perf_counter()
            try:
                row = compare(name, mode)
            except Exception as error:
                failed.append((name, mode))
                print(f"{name:12} {mode:9} FAIL  {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            ops |= row.ops
            if not row.passed:
                failed.append((name, mode))
            print(_line(row, time.perf_counter() - started), flush=True)
    print(f"{len(failed)} failed{': ' if failed else ''}{', '.join(map(' '.join, failed))}")
    print(f"{len(ops)} ops: {' '.join(sorted(ops))}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
