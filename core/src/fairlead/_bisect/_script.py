"""The files that show a failure again: a graph with its inputs, and a script that needs core and the backend alone."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fairlead import ir
from fairlead._bisect._candidate import Candidate, expected
from fairlead._bisect._sizes import sized
from fairlead._bisect._trials import Outcome
from fairlead._options import changed
from fairlead.backend import Options
from fairlead.bisection import Failure
from fairlead.interpret import restride, tensor_of
from fairlead.ir import Graph, Input

__all__ = ["Script", "redrawn", "shows"]

_SCRIPT = '''\
"""{title}"""

{imports}

file = ir.read(Path(__file__).with_suffix(".fir"))
graph = file.module.graphs[0]
print(ir.to_text(graph))
tensors = {{i: interpret.tensor_of(data) for i, data in file.constants({stored}).items()}}
{inputs}

backend = registry.ready({backend!r})
options = backend.options_type({options})
with torch.no_grad():
    executable = backend.compile(graph, options, {constants})
    results = executable([x for i, x in enumerate(inputs) if i not in executable.baked])
for got, right, limit in zip(results, interpret.run(graph, inputs), {limits}, strict=True):
    torch.testing.assert_close(torch.from_dlpack(got), right, rtol=0, atol=limit, equal_nan=True)
'''

_IMPORTS = """\
from pathlib import Path

import torch

from fairlead import interpret, ir
from fairlead.registry import registry"""


def redrawn(candidate: Candidate) -> Candidate:
    """The same graph on what a file without tensors would draw in their place."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bisect-") as folder:
        path = Path(folder, "random.fir")
        ir.write(path, sized(candidate).graph, _tensors(candidate), weights="random")
        drawn = {i: tensor_of(data) for i, data in ir.read(path).constants().items()}
    inputs = candidate.graph.inputs
    return candidate._replace(inputs=tuple(_given(drawn, candidate, i, item) for i, item in enumerate(inputs)))


class Script(NamedTuple):
    """What a script says of the backend. ``drawn``: the file keeps a specification of the tensors, as in `redrawn`."""

    backend: str
    options: Options
    timeout: float
    drawn: bool

    def write(self, folder: Path, candidate: Candidate, outcome: Outcome) -> Path:
        """Write the graph and the script beside it; answers with the path of that.

        Inputs that a file keeps have sizes: it holds a graph with symbols a second time, for the sizes of these inputs.
        """
        folder.mkdir(parents=True, exist_ok=True)
        graph = candidate.graph
        name = f"{self.backend}-{graph.nodes[-1].op}-{ir.fingerprint(graph)[:8]}"
        path = folder / f"bisect-{re.sub(r'[^A-Za-z0-9]+', '-', name)}.py"
        graphs = _stored(candidate)
        tensors = {(len(graphs) - 1, i): x for i, x in _tensors(candidate).items()}
        ir.write(path.with_suffix(".fir"), ir.module(*graphs), tensors, weights="random" if self.drawn else "inline")
        path.write_text(self._text(candidate, outcome), "utf-8")
        return path

    def _text(self, candidate: Candidate, outcome: Outcome) -> str:
        ops = ", ".join(dict.fromkeys(node.op for node in candidate.graph.nodes))
        imports = _IMPORTS
        if outcome.failure is Failure.hang:
            watch = f"faulthandler.dump_traceback_later({self.timeout:g}, exit=True)"
            imports = f"import faulthandler\n{_IMPORTS}\n\n{watch}"
        constants = ", ".join(f"{i}: inputs[{i}]" for i in sorted(candidate.constants))
        return _SCRIPT.format(
            title=_title(f"{ops} on {self.backend}: {outcome.failure}: {outcome.detail}"),
            imports=imports,
            stored="" if len(_stored(candidate)) == 1 else 1,
            inputs=_inputs(candidate),
            backend=self.backend,
            options=", ".join(f"{name}={value!r}" for name, value in changed(self.options).items()),
            constants=f"{{{constants}}}",
            limits=_limits(candidate),
        )


def _stored(candidate: Candidate) -> tuple[Graph, ...]:
    """The graph, and the one for whose inputs a file can hold tensors, where that is another."""
    graph = sized(candidate).graph
    return (graph,) if graph is candidate.graph else (candidate.graph, graph)


def _limits(candidate: Candidate) -> str:
    """How far from eager's each result may be; random numbers may be anything."""
    meant = expected(candidate)
    return f"[float('inf')] * {len(candidate.graph.outputs)}" if meant is None else repr(list(meant.limits()))


def _inputs(candidate: Candidate) -> str:
    """The lines that make the list of inputs."""
    numbers = {i: x for i, x in enumerate(candidate.inputs) if not isinstance(x, torch.Tensor)}
    stored = f"(tensors | {numbers})" if numbers else "tensors"
    lines = [f"inputs = [value for _, value in sorted({stored}.items())]"]
    if strides := _strides(candidate):
        lines += [f"for i, strides in {strides}.items():", "    inputs[i] = interpret.restride(inputs[i], strides)"]
    return "\n".join(lines)


def shows(script: Path, outcome: Outcome, seconds: float) -> bool:
    """Whether the script fails within the time as it ought to."""
    command = [sys.executable, str(script)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        return outcome.failure is Failure.hang
    match outcome.failure:
        case Failure.wrong:
            said = "AssertionError" in ran.stderr
        case Failure.hang:
            said = "Timeout" in ran.stderr
        case Failure.error:
            said = outcome.like in ran.stderr
        case _:
            said = "Traceback" not in ran.stderr
    return said and ran.returncode != 0


def _tensors(candidate: Candidate) -> dict[int, torch.Tensor]:
    return {i: x.detach() for i, x in enumerate(candidate.inputs) if isinstance(x, torch.Tensor)}


def _given(drawn: Mapping[int, torch.Tensor], candidate: Candidate, index: int, item: Input) -> Any:
    if index not in drawn:
        return candidate.inputs[index]
    strides = _strides(candidate).get(index)
    return drawn[index] if strides is None else restride(drawn[index], strides)


def _strides(candidate: Candidate) -> dict[int, tuple[int, ...]]:
    """Those of inputs that are not row-major."""
    tensors = ((i, x) for i, x in enumerate(candidate.inputs) if isinstance(x, torch.Tensor))
    return {i: tuple(x.stride()) for i, x in tensors if not x.is_contiguous()}


def _title(text: str) -> str:
    return textwrap.shorten(text.replace("\\", "/").replace('"', "'"), 110)
