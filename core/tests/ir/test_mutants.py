"""Any single change of meaning changes the hash, and nothing else does; and every interpreter agrees on it."""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys

import msgspec
import pytest
import torch
from mutants import disguised, mutants

import fairlead
from fairlead.hooks import hookimpl, plugin_manager
from fairlead.ir import Graph, fingerprint, from_bytes, module, to_bytes

from .random_graphs import random_graph

REPOSITORY = pathlib.Path(__file__).parents[3]


class _Listener:
    def __init__(self) -> None:
        self.graphs: list[Graph] = []

    @hookimpl
    def fairlead_captured(self, graph: Graph) -> None:
        self.graphs.append(graph)


def _attention(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = torch.nn.functional.scaled_dot_product_attention(x, x, x, mask)
    return torch.cat([y.transpose(1, 2).reshape(x.shape[0], -1), torch.zeros(x.shape[0], 3)], 1).clamp(-1.5, 0.25)


@functools.cache
def captured() -> tuple[Graph, ...]:
    """The graphs of a training step of a convolutional network, and of attention with a batch of any size."""
    listener = _Listener()
    plugin_manager().register(listener, "test-mutants")
    try:
        layers = (torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU(), torch.nn.Flatten())
        model = fairlead.compile(torch.nn.Sequential(*layers, torch.nn.Linear(144, 5)), backend="eager")
        torch.nn.functional.cross_entropy(model(torch.randn(2, 3, 8, 8)), torch.tensor([1, 3])).backward()
        with torch.no_grad():
            attention = fairlead.compile(_attention, backend="eager", dynamic=True)
            attention(torch.randn(3, 2, 4, 8), torch.zeros(4, 4))
    finally:
        plugin_manager().unregister(name="test-mutants")
    return tuple(listener.graphs)


def samples() -> list[Graph]:
    return [*captured(), *map(random_graph, range(40))]


def test_every_single_change_of_meaning_changes_the_hash() -> None:
    count, missed = 0, []
    for graph in samples():
        original = fingerprint(graph)
        for what, mutant in mutants(graph):
            count += 1
            if fingerprint(mutant) == original:
                missed.append((graph.name, what))
    assert missed == []
    assert count > 5000


def test_the_captured_graphs_have_symbols_mutations_and_a_backward() -> None:
    assert {g.kind.value for g in captured()} == {"inference", "forward", "backward"}
    assert any(g.symbols for g in captured())
    assert any(o.target is not None for g in captured() for o in g.outputs)


def test_names_numbers_lines_and_the_order_of_declarations_do_not_change_the_hash() -> None:
    for graph in samples():
        assert fingerprint(disguised(graph)) == fingerprint(graph), graph.name


_CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from fairlead.ir import fingerprint, from_bytes, to_bytes
with open(sys.argv[2], "rb") as file:
    while size := int.from_bytes(file.read(4), "big"):
        module = from_bytes(file.read(size))
        print(fingerprint(module), *map(fingerprint, module.graphs), hash(to_bytes(module)) and len(to_bytes(module)))
"""


def _pythons() -> list[str]:
    """This Python, and those named in FAIRLEAD_PYTHONS: of other versions, with Fairlead's requirements installed."""
    return [sys.executable, *filter(None, os.environ.get("FAIRLEAD_PYTHONS", "").split(os.pathsep))]


def test_processes_and_versions_of_python_hash_alike(tmp_path: pathlib.Path) -> None:
    modules = [module(graph, producer={}) for graph in samples()]
    with open(tmp_path / "modules", "wb") as file:
        for one in modules:
            data = to_bytes(one)
            file.write(len(data).to_bytes(4, "big") + data)
    own = [f"{fingerprint(m)} {fingerprint(m.graph)} {len(to_bytes(m))}" for m in modules]
    for python in _pythons():
        for seed in ("1", "2"):
            command = [python, "-c", _CHILD, str(REPOSITORY / "core/src"), str(tmp_path / "modules")]
            env = {**os.environ, "PYTHONHASHSEED": seed}
            run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            assert run.stdout.splitlines() == own


@pytest.mark.parametrize("number", range(3))
def test_captured_graphs_keep_their_hash_in_bytes(number: int) -> None:
    graph = captured()[number]
    assert from_bytes(to_bytes(graph)).graph == _without_locations(graph)
    assert fingerprint(from_bytes(to_bytes(graph)).graph) == fingerprint(graph)


def _without_locations(graph: Graph) -> Graph:
    replace = msgspec.structs.replace
    return replace(graph, nodes=tuple(replace(n, location=None) for n in graph.nodes))
