"""Promises about modules as objects: exported, saved, copied, compiled by a name."""

from __future__ import annotations

import copy
import io
import pickle

import torch

from fairlead.hooks import hookimpl, plugin_manager

from ._catalogue import Section
from ._through import Net, Through

__all__ = ["PROMISES"]

promise = Section("Modules")
PROMISES = promise.promises


@promise("A program of `torch.export`, as it is and out of a file")
def exported(through: Through) -> None:
    net = through.net()
    x = through.randn(3, 4)
    program = torch.export.export(net, (x,))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    with torch.no_grad():
        for given in (program, program.module(), torch.export.load(file)):
            through.agrees(through.compile(given, fullgraph=True), net, x)
    assert through.kinds == ["inference"] * 3


@promise("`state_dict` of a compiled module: saved, and loaded by another")
def state(through: Through) -> None:
    saved, file = through.compile(through.net()), io.BytesIO()
    torch.save(saved.state_dict(), file)
    file.seek(0)
    other = Net().to(through.device)
    loaded = through.compile(other)
    x = through.randn(3, 4)
    with torch.no_grad():
        through.agrees(loaded, other, x)
        loaded.load_state_dict(torch.load(file))
        through.agrees(loaded, through.net(), x)
        through.agrees(saved, other, x)


@promise("`copy.deepcopy` of a compiled module")
def copied(through: Through) -> None:
    net = through.net()
    x = through.randn(3, 4)
    with torch.no_grad():
        compiled = through.compile(net)
        through.agrees(compiled, net, x)
        twin = copy.deepcopy(compiled)
        through.watch(twin)
        twin.up.weight.mul_(2)
        through.agrees(twin, copy.deepcopy(twin._orig_mod), x)
        through.agrees(compiled, through.net(), x)
    assert through.kinds == ["inference"] * 2


@promise("Pickling a compiled module")
def pickled(through: Through) -> None:
    net = through.net()
    x = through.randn(3, 4)
    with torch.no_grad():
        twin = pickle.loads(pickle.dumps(through.compile(net)))
        through.watch(twin)
        through.agrees(twin, net, x)
    assert through.kinds == ["inference"]
    assert twin.fairlead.backend == through.backend


class Compiled:
    """A plugin that sees who compiles."""

    def __init__(self) -> None:
        self.backends: list[str] = []

    @hookimpl
    def fairlead_compiled(self, job: object, executable: object, seconds: float) -> None:
        self.backends.append(job.backend.name)  # type: ignore[attr-defined]


@promise("`torch.compile` and `Module.compile` with the backend's name")
def by_name(through: Through) -> None:
    x = through.randn(3, 4)
    compiled = Compiled()
    plugin_manager().register(compiled)
    try:
        with torch.no_grad():
            named = torch.compile(through.net(), backend=f"fairlead-{through.backend}")
            through.agrees(named, through.net(), x)
            chosen = {"backend": through.backend, "fallback": through.fallback}
            through.agrees(torch.compile(through.net(), backend="fairlead", options=chosen), through.net(), x)
            itself = through.net()
            itself.compile(backend=f"fairlead-{through.backend}")
            through.agrees(itself, through.net(), x)
    finally:
        plugin_manager().unregister(compiled)
    assert set(compiled.backends) == {through.backend}
