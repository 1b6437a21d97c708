"""Other processes: one that is spawned, one that is forked, and what is stored for later ones."""

from __future__ import annotations

import functools
import random

import torch

from fairlead.backend import Executable, Serializable
from fairlead.interpret import in_clean_thread, run
from fairlead.ir import Builder, Graph
from fairlead_conformance._case import Level
from fairlead_conformance._device import placed
from fairlead_conformance._families.lifecycle._question import asked, fresh, question, wheel_of
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._parts import parts_of, prepared
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

_PROGRAM = """
import json, os, sys
def answer():
    import torch, fairlead, logging
    logging.disable(logging.WARNING)
    program = fairlead.compile(lambda x: (x * 2 + 1).relu(), backend=sys.argv[1], fallback=("eager",))
    with torch.no_grad():
        return program(torch.tensor([-1.0, 0.0, 2.0], device=sys.argv[2])).tolist()
"""

_SPAWNED = _PROGRAM + "print(json.dumps(answer()))"

_FORKED = (
    _PROGRAM
    + """
from fairlead.registry import registry
registry.ready(sys.argv[1])
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        pipe.write(json.dumps(answer()))
    os._exit(0)
os.close(writing)
with os.fdopen(reading) as pipe:
    said = pipe.read()
os.waitpid(child, 0)
print(said or "null")
"""
)

_ANSWER = [0.0, 1.0, 5.0]


@question(Level.L1, cost=5)
def a_spawned_process_runs_it(subject: Subject, seen: Observation) -> None:
    wheel_of(subject)
    got = fresh(_SPAWNED, subject.name, subject.place)
    asked(got == _ANSWER, seen, Status.FAIL_MISMATCH, "spawn", f"a fresh process computes {got}, not {_ANSWER}")


@question(Level.L2, cost=6)
def a_forked_process_runs_it(subject: Subject, seen: Observation) -> None:
    wheel_of(subject)
    got = fresh(_FORKED, subject.name, subject.place)
    asked(got == _ANSWER, seen, Status.FAIL_CRASH, "fork", f"a child forked after loading computes {got}")


def _small() -> Graph:
    b = Builder("small")
    x, y = b.input("f32[3, 4]", "x"), b.input("f32[3, 4]", "y")
    b.output(b.op("aten.relu.default", b.op("aten.mul.Tensor", x, y)))
    return b.graph()


@question(Level.L1, cost=0.5)
def what_it_stores_it_loads(subject: Subject, seen: Observation) -> None:
    backend = subject.backend
    if not isinstance(backend, Serializable):
        raise Declined({"dump": "executables cannot be stored"})
    (part,) = parts_of(prepared(placed(_small(), subject.place), subject), subject)
    compiled: Executable = in_clean_thread(lambda: backend.compile(part.graph, subject.options, {}))
    stored = backend.dump(compiled)
    loaded = in_clean_thread(lambda: backend.load(stored, part.graph, subject.options, {}))
    generator = torch.Generator().manual_seed(subject.seed)
    inputs = [torch.randn(3, 4, generator=generator).to(subject.place) for _ in part.graph.inputs]
    with torch.no_grad():
        got, wanted = loaded(list(inputs))[0], run(part.graph, inputs)[0]
    same = torch.allclose(torch.as_tensor(got), wanted)
    asked(same, seen, Status.FAIL_MISMATCH, "round-trip", "what was stored and loaded computes something else")


@question(Level.L2, cost=1)
def what_is_damaged_it_does_not_load(subject: Subject, seen: Observation) -> None:
    backend = subject.backend
    if not isinstance(backend, Serializable):
        raise Declined({"dump": "executables cannot be stored"})
    (part,) = parts_of(prepared(placed(_small(), subject.place), subject), subject)
    stored = backend.dump(in_clean_thread(lambda: backend.compile(part.graph, subject.options, {})))
    noise = random.Random(subject.seed).randbytes(len(stored) // 2)
    for damaged in (b"", stored[: len(stored) // 2], noise):
        try:
            in_clean_thread(functools.partial(backend.load, damaged, part.graph, subject.options, {}))
        except Exception:
            seen.compared += 1
            continue
        raise Failed(Status.FAIL_ERRORS, "damaged", f"{len(damaged)} bytes that it never wrote are loaded")
