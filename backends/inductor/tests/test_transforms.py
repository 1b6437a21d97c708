"""Fourier transforms, of which torch before 2.12 says other strides than they have: Inductor's code then fails."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import torch

from fairlead.ir import Builder, Graph
from fairlead_inductor import InductorBackend, InductorOptions, _backend

pytestmark = pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")

SIZES = (3, 4, 6)

PLACES = [
    (dims, order)
    for count in (1, 2)
    for dims in itertools.permutations(range(3), count)
    for order in ((0, 1, 2), (0, 2, 1))
]
"""Dimensions to transform, and in which order the operand's lie in memory."""


def operand(op: str, order: tuple[int, ...]) -> torch.Tensor:
    real = torch.randn([SIZES[k] for k in order]).permute([order.index(k) for k in range(3)])
    return real if op == "r2c" else torch.complex(real, real.cos())


def rest(op: str, dims: tuple[int, ...]) -> tuple[list[int], int, int | bool]:
    """The arguments after the operand: the length of what is real, or that half of the numbers will do."""
    return list(dims), 0, SIZES[dims[-1]] if op == "c2r" else True


def graph(op: str, places: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[Graph, list[torch.Tensor]]:
    """A transform for each place, and its inputs."""
    b, inputs = Builder("g"), []
    for dims, order in places:
        x = operand(op, order)
        given = b.input(f"{'f32' if op == 'r2c' else 'c64'}[3, 4, 6] strides{list(x.stride())}", f"x{len(inputs)}")
        b.output(b.op(f"aten._fft_{op}.default", given, *rest(op, dims)))
        inputs.append(x)
    return b.graph(), inputs


@pytest.mark.parametrize("op", ["r2c", "c2c", "c2r"])
def test_what_is_taken_is_computed(op: str) -> None:
    nodes = zip(PLACES, graph(op, PLACES)[0].nodes, strict=True)
    taken = [place for place, node in nodes if InductorBackend().supports(node).accepted]
    assert ((2,), (0, 1, 2)) in taken
    there, inputs = graph(op, taken)
    found = InductorBackend().compile(there, InductorOptions(), {})(list(inputs))
    for (dims, _), x, got in zip(taken, inputs, found, strict=True):
        torch.testing.assert_close(got, getattr(torch.ops.aten, f"_fft_{op}").default(x, *rest(op, dims)))


@pytest.mark.parametrize(("op", "count"), [("r2c", 1), ("c2c", 9), ("c2r", 9)])
def test_before_torch_2_12_those_are_taken_whose_strides_it_knows(
    op: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_backend, "_misplaces_transforms", lambda: True)
    found = [InductorBackend().supports(node) for node in graph(op, PLACES)[0].nodes]
    assert sum(support.accepted for support in found) == count
    assert {s.reason for s in found if not s.accepted} == {
        "torch before 2.12 tells Inductor other strides than the transform's results have"
    }
