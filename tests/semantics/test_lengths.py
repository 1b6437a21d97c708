"""Fifty lengths of a sequence: two programs serve them, as torch keeps length 1 apart, and none is compiled later."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch

import fairlead
from fairlead.backend import Executable
from fairlead.hooks import CompileJob, hookimpl, plugin_manager

from .conftest import BACKENDS
from .nets import Decoder

LONGEST = 64
FIXED = ("openxla",)
"""Backends that compile for each set of sizes: lengths are padded to a few for them."""


class Compiled:
    """A plugin that keeps the names of the graphs that a backend has compiled."""

    def __init__(self) -> None:
        self.graphs: list[str] = []

    @hookimpl
    def fairlead_compiled(self, job: CompileJob, executable: Executable, seconds: float) -> None:
        self.graphs.append(job.graph.name)


@pytest.fixture
def compiled_graphs() -> Iterator[list[str]]:
    plugin = Compiled()
    plugin_manager().register(plugin)
    yield plugin.graphs
    plugin_manager().unregister(plugin)


def lengths() -> list[int]:
    """1, 2, the longest, and 47 others in no order."""
    others = list(range(3, 50))
    random.Random(0).shuffle(others)
    return [1, 2, LONGEST, *others]


def check(program: torch.nn.Module, model: Decoder, length: int) -> None:
    ids = torch.randint(0, 32, (2, length))
    torch.testing.assert_close(program(ids), model(ids), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in BACKENDS if name not in FIXED])
def test_after_the_second_length_nothing_is_compiled(name: str, compiled_graphs: list[str]) -> None:
    model = Decoder(LONGEST).eval()
    program = fairlead.compile(model, backend=name, max_fallback=0)
    with torch.no_grad():
        for count, length in enumerate(lengths(), 1):
            check(program, model, length)
            if count == 2:
                known = list(compiled_graphs)
    assert (len(known), compiled_graphs) == (2, known)
    assert len(program.fairlead.recompilations) == 1
    assert count == 50


@pytest.mark.parametrize("name", FIXED)
def test_padded_to_buckets_nothing_is_compiled_after_them(name: str, compiled_graphs: list[str]) -> None:
    model = Decoder(LONGEST).eval()
    length = fairlead.Dim("length", max=LONGEST, buckets=[16, LONGEST])
    program = fairlead.compile(model, backend=name, max_fallback=0, shapes={"ids": {1: length}})
    with torch.no_grad():
        fairlead.compile_ahead(program, [torch.randint(0, 32, (2, 9))])
        with fairlead.freeze(program) as frozen:
            for size in lengths():
                check(program, model, size)
    assert frozen.misses == 0
    assert len(compiled_graphs) == 2
