"""Whole nets: about sixteen small ones with fixed weights, and real architectures from their public configurations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from fairlead_conformance._case import Case, Level
from fairlead_conformance._families.models._architectures import ARCHITECTURES
from fairlead_conformance._families.models._zoo import NETS, Net
from fairlead_conformance._observation import Observation
from fairlead_conformance._programs import Trial
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_LEVELS = {"forward": Level.L2, "dynamic": Level.L2, "backward": Level.L3, "bf16": Level.L2}
_NEEDS = {"dynamic": ("dynamic_shapes",), "backward": ("training",)}


def cases() -> Sequence[Case]:
    nets = {**NETS, **ARCHITECTURES}
    return [_case(name, how) for name in sorted(nets) for how in _ways(nets[name])]


def _ways(net: Net) -> Iterator[str]:
    yield from ("forward", "dynamic")
    if net.learns:
        yield "backward"
    if net.halves:
        yield "bf16"


def _case(name: str, how: str) -> Case:
    dtype = "bf16" if how == "bf16" else "f32"
    return Case(
        id=f"models/{name}/{dtype}/s000~{how}",
        level=_LEVELS[how],
        needs=_NEEDS.get(how, ()),
        dtypes=(dtype,),
        cost=3.0 if name in ARCHITECTURES else 1.0,
    )


def run(case: Case, subject: Subject, seen: Observation) -> None:
    net = (NETS | ARCHITECTURES)[case.subject]
    with Trial(case, subject, seen) as trial:
        _WAYS[case.variant](trial, net)


def _forward(trial: Trial, net: Net) -> None:
    twin = trial.compile(trial.made(net.make), draws=net.draws)
    for _ in range(2):
        twin(*net.inputs(trial, *net.sizes[0]))


def _dynamic(trial: Trial, net: Net) -> None:
    twin = trial.compile(trial.made(net.make), draws=net.draws, dynamic=True)
    for size in net.sizes:
        twin(*net.inputs(trial, *size))


def _backward(trial: Trial, net: Net) -> None:
    twin = trial.compile(trial.made(net.make), draws=net.draws)
    twin.gradients(*net.inputs(trial, *net.sizes[0]))


def _in_bfloat16(trial: Trial, net: Net) -> None:
    module = trial.made(net.make).to(torch.bfloat16)
    inputs = net.inputs(trial, *net.sizes[0])
    twin = trial.compile(module, draws=net.draws, exact=False)
    twin(*(t.to(torch.bfloat16) if t.is_floating_point() else t for t in inputs))


_WAYS = {"forward": _forward, "dynamic": _dynamic, "backward": _backward, "bf16": _in_bfloat16}
