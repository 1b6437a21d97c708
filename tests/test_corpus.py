"""The golden corpus: graphs captured on several releases of torch load, print, hash and compute as they did."""

from __future__ import annotations

import pytest
import torch

from fairlead._torch_types import TORCH_DTYPES
from fairlead.interpret import run
from fairlead.ir import Graph, Value, diff, fingerprint, from_bytes, to_bytes
from tests.matrix import _corpus
from tests.matrix._summary import agree, drawn, summary

pytest.importorskip("transformers.integrations.moe", reason="registers an op that mixtral's graphs call")

INDEX = _corpus.load()
RELEASE = ".".join(torch.__version__.split(".")[:2])
RECAPTURED = ("bert-eval", "resnet-train", "op-nn.functional.conv2d", "op-index_put")


@pytest.mark.parametrize("name", INDEX.files)
def test_a_golden_module_computes_what_it_did(name: str) -> None:
    entry = INDEX.files[name]
    graphs = _corpus.load_module(name).graphs
    for graph, inputs, outputs in zip(graphs, entry.inputs, entry.outputs, strict=True):
        found = tuple(map(summary, run(graph, drawn(graph, inputs.split()))))
        wrong = [
            (index, a, b)
            for index, (a, b, dtype) in enumerate(zip(outputs, found, dtypes(graph), strict=True))
            if not agree(a, b, dtype)
        ]
        assert not wrong, f"{graph.name} of torch {entry.torch}"


def dtypes(graph: Graph) -> list[torch.dtype]:
    return [TORCH_DTYPES[o.value.tensor.dtype] if isinstance(o.value, Value) else torch.int64 for o in graph.outputs]


@pytest.mark.parametrize("name", INDEX.files)
def test_a_golden_module_comes_back_from_its_forms(name: str) -> None:
    module = _corpus.load_module(name)
    again = from_bytes(to_bytes(module))
    assert again == module
    assert list(map(fingerprint, again.graphs)) == list(map(fingerprint, module.graphs))


def test_every_program_is_there_for_every_release() -> None:
    releases = {"2.8", "2.11", "2.13", "2.15"}
    assert {name: set(found) for name, found in INDEX.programs.items()} == dict.fromkeys(INDEX.programs, releases)


@pytest.mark.parametrize(("release", "share"), [("2.15", 0.9), ("2.11", 0.7), ("2.8", 0.6)])
def test_most_models_hash_equally_on_two_releases(release: str, share: float) -> None:
    models = [found for name, found in INDEX.programs.items() if not name.startswith("op-")]
    assert sum(found[release] == found["2.13"] for found in models) >= share * len(models)


def test_what_hashes_differently_is_explained() -> None:
    for name, found in INDEX.programs.items():
        for other in set(found.values()) - {found["2.13"]}:
            pairs = zip(_corpus.load_module(found["2.13"]).graphs, _corpus.load_module(other).graphs, strict=False)
            assert any(diff(a, b).differences for a, b in pairs), name


@pytest.mark.skipif(RELEASE not in {r for found in INDEX.programs.values() for r in found}, reason="no golden release")
@pytest.mark.parametrize("name", RECAPTURED)
def test_a_program_is_captured_as_it_was(name: str) -> None:
    capture = pytest.importorskip("tests.matrix._capture")
    programs = pytest.importorskip("tests.matrix._programs")
    (program,) = (*programs.models(name), *(p for p in programs.ops(name) if p.name == name))
    golden = capture.capture_program(program)
    old = _corpus.load_module(INDEX.programs[name][RELEASE]).graphs
    assert [str(diff(a, g.graph)) for a, g in zip(old, golden, strict=True) if not diff(a, g.graph).equal] == []
