"""The files of one failure: a script, and for a graph the graph and its inputs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import torch

from fairlead import ir
from fairlead_conformance._case import Case
from fairlead_conformance._device import placed
from fairlead_conformance._families import family
from fairlead_conformance._graphs import check_graph, prepared
from fairlead_conformance._inputs import copies
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._parts import laid_out
from fairlead_conformance._repro._shrink import Failing, shrunk
from fairlead_conformance._subject import Subject

__all__ = ["write_repro"]

_OF_A_GRAPH = '''\
"""{title}"""

from pathlib import Path

import torch

from fairlead import interpret, ir
from fairlead.registry import registry

here = Path(__file__)
graph = ir.read(here.with_suffix(".fir")).graph
inputs = torch.load(here.with_suffix(".pt"))
backend = registry.ready({name!r})
print(ir.to_text(graph))

wanted = interpret.run(graph, inputs)
executable = backend.compile(graph, backend.options_type(), {{}})
with torch.no_grad():
    results = [torch.from_dlpack(result) for result in executable(inputs)]
for index, (got, right) in enumerate(zip(results, wanted, strict=True)):
    print(f"output {{index}}: {{got}}\\n  eager has {{right}}")
    torch.testing.assert_close(got, right, equal_nan=True)
'''

_OF_A_PROGRAM = '''\
"""{title}"""

from fairlead_conformance import Case, Level, Subject, execute

case = Case(id={id!r}, level=Level.{level})
result = execute(case, Subject({name!r}, seed={seed}, device={device!r}))
print(result.status, result.check, result.detail)
raise SystemExit(result.status.failed)
'''


def write_repro(case: Case, subject: Subject, folder: Path, seconds: float = 20.0) -> list[Path]:
    """Run the case, and write what shows its failure again; nothing where it does not fail.

    A case of one graph becomes a script that needs Fairlead and the backend alone, with the graph and its inputs,
    shrunk for at most so many seconds. Any other becomes a script that runs the case.
    """
    seen = Observation()
    try:
        family(case.family).run(case, subject, seen)
    except Declined:
        return []
    except Failed as failure:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (re.sub(r"[^\w.-]+", "-", case.id) + ".py")
        names = {
            "name": subject.name,
            "id": case.id,
            "seed": subject.seed,
            "device": subject.device,
            "level": case.level.name,
        }
        title = _title(case, subject, failure)
        if seen.examined is None:
            path.write_text(_OF_A_PROGRAM.format(title=title, **names), "utf-8")
            return [path]
        graph, inputs = seen.examined
        failing = Failing(placed(prepared(placed(graph, subject.place), subject), "cpu"), inputs)
        smallest = _smallest(failing, failure, subject, seconds)
        path.write_text(_OF_A_GRAPH.format(title=title, **names), "utf-8")
        graph = placed(laid_out(smallest.graph, smallest.inputs), subject.place)
        ir.write(path.with_suffix(".fir"), graph, locations=False)
        torch.save(copies(smallest.inputs, subject.place), path.with_suffix(".pt"))
        return [path, path.with_suffix(".fir"), path.with_suffix(".pt")]
    return []


def _title(case: Case, subject: Subject, failure: Failed) -> str:
    said = f"{case.id} on {subject.name}: {failure.status}, {failure.check}: {failure.detail}"
    return textwrap.shorten(said.replace("\\", "/").replace('"', "'"), 110)


def _smallest(failing: Failing, failure: Failed, subject: Subject, seconds: float) -> Failing:
    def fails(candidate: Failing) -> bool:
        try:
            check_graph(candidate.graph, candidate.inputs, subject, Observation())
        except Failed as other:
            return (other.status, other.check) == (failure.status, failure.check)
        except Exception:
            return False
        return False

    return shrunk(failing, fails, seconds) if fails(failing) else failing
