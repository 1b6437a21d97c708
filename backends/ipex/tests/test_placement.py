"""What is handed to others, with the reason, and what happens where there are no others."""

from __future__ import annotations

import pytest
import torch

import fairlead
from fairlead import ir
from fairlead.errors import ArtifactFormatError
from fairlead.ir import Builder, Kind, Role
from fairlead_ipex import IpexOptions, backend


def graph(
    kind: Kind = Kind.inference, *, role: Role = Role.parameter, passes: int = 0, rows: int | str = 256, op: str = "sin"
) -> ir.Graph:
    """A linear layer of so many rows and as many element-wise passes."""
    b = Builder("g", kind)
    x, w = b.input(f"f32[{rows}, 64]"), b.input("f32[512, 64]", role=role)
    y = b.op("aten.linear.default", x, w, None)
    for _ in range(passes):
        y = b.op(f"aten.{op}.default", y)
    b.output(y)
    return b.graph()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (graph(), None),
        (graph(Kind.forward), "weights change in training: nothing is packed"),
        (graph(role=Role.user), "no product with weights of float32 or bfloat16: there is nothing to pack"),
        (graph(rows=4, role=Role.user), None),
        (graph(passes=8, op="silu"), None),
        (graph(passes=8, op="relu", rows="n"), "slower than Inductor here: little to pack beside what it fuses"),
        (graph(passes=8, rows="n"), "slower than Inductor here: little to pack beside what it fuses"),
        (graph(passes=8), None),  # Inductor compiles what lies after the product
    ],
)
def test_a_graph_in_which_packing_gains_nothing_goes_to_others(given: ir.Graph, reason: str | None) -> None:
    assert backend.declines_graph(given) == reason


def test_a_training_step_runs_in_the_next_backend_and_says_why() -> None:
    model = torch.nn.Linear(8, 8)
    compiled = fairlead.compile(model, backend="ipex", fallback=("eager",))
    compiled(torch.randn(4, 8)).sum().backward()
    assert model.weight.grad is not None
    assert {d.reason for d in compiled.fairlead.placement.declines} == {"weights change in training: nothing is packed"}


def test_what_was_stored_of_another_graph_is_refused() -> None:
    run = backend.compile(graph(), IpexOptions(), {})
    assert backend.load(backend.dump(run), graph(), IpexOptions(), {}).graph == graph()
    with pytest.raises(ArtifactFormatError, match="not what ipex stored of this graph"):
        backend.load(backend.dump(run), graph(passes=1), IpexOptions(), {})
