"""Captures entries of PyTorch's OpInfo database and sends their graphs through the three forms of the IR.

One JSON line an entry and direction: how many graphs there were, and which forms gave back another module or hash. A
program of its own for the reasons that `opset_entries` has.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from opset_capture import Ops
from opset_entries import DTYPES, directions, evenly, run_sample, unseeded
from torch.testing._internal import common_methods_invocations as invocations

from fairlead._capture import Captured
from fairlead.ir import Graph, Module, fingerprint, from_bytes, module, parse, read, to_bytes, to_text, write
from fairlead.passes import canonicalize, recognize_composites


def changed(written: Module, path: Path) -> list[str]:
    """The forms that give back a module that is not equal, or has another hash."""
    write(path, written, weights="none")
    found = {
        "text": equal(parse(to_text(written, locations=True)), written),
        "file": equal(read(path).module, written),
        "MessagePack": equal(from_bytes(to_bytes(written)), without_lines(written)),
    }
    hashes = {
        fingerprint(m) for m in (written, parse(to_text(written)), read(path).module, from_bytes(to_bytes(written)))
    }
    return [form for form, is_equal in found.items() if not is_equal] + ["hash"] * (len(hashes) != 1)


def equal(a: Module, b: Module) -> bool:
    """Whether all of it is equal; where nan is among the arguments the text tells, as nan does not equal itself."""
    return a == b or to_text(a, locations=True) == to_text(b, locations=True)


def without_lines(written: Module) -> Module:
    """The module without source lines, which MessagePack leaves out."""
    return msgspec.structs.replace(written, graphs=tuple(map(_without_lines, written.graphs)))


def _without_lines(graph: Graph) -> Graph:
    nodes = (
        msgspec.structs.replace(n, location=None, regions=tuple(map(_without_lines, n.regions))) for n in graph.nodes
    )
    return msgspec.structs.replace(graph, nodes=tuple(nodes))


class Forms(Ops):
    """A sink that sends every graph through the forms, as it is captured and as backends get it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.graphs = self.nodes = 0
        self.changed: list[str] = []

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        """Write and read, and let torch run the graph."""
        canonical = recognize_composites(canonicalize(captured.graph))
        both = captured.graph, msgspec.structs.replace(canonical, name="canonical")
        self.graphs += len(both)
        self.nodes += sum(len(list(g.walk())) for g in both)
        self.changed += changed(module(*both), self.path)
        return super().graph(captured)


def sent(name: str, op: Any, direction: str, samples: int, sink: Forms) -> dict[str, Any]:
    """One line of the answer."""
    training, error = direction == "backward", ""
    dtype = next(d for d in DTYPES if d in op.supported_dtypes("cpu"))
    try:
        for sample in evenly(op.sample_inputs("cpu", dtype, requires_grad=training), samples):
            run_sample(op.op, sample, training, sink)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}".strip().splitlines()[0][:200]
    counts = {"graphs": sink.graphs, "nodes": sink.nodes, "changed": sink.changed}
    return {"entry": name, "direction": direction, "error": error or sink.refused, **counts}


def main(samples: int, names: list[str]) -> None:
    """``list`` prints the entries; anything else captures those that are named."""
    warnings.simplefilter("ignore")
    invocations.wrapper_set_seed = unseeded  # no seed inside a graph
    entries = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in invocations.op_db}
    if names == ["list"]:
        print(json.dumps([name for name, op in entries.items() if directions(op)]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print(json.dumps({"begin": name}), flush=True)
            for direction in directions(entries[name]):
                torch.manual_seed(0)
                sink = Forms(Path(folder) / "module.fir")
                print(json.dumps(sent(name, entries[name], direction, samples, sink)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
