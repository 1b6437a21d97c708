"""What is handed to others, with the reason, and what happens where there are no others."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fairlead
from fairlead import ir
from fairlead.errors import ArtifactFormatError
from fairlead.ir import Builder, Kind, Role
from fairlead_ipex import IpexOptions, _worth, backend


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
        (graph(Kind.forward), None),
        (
            graph(Kind.forward, passes=1, op="erfinv"),
            "nothing is packed in training, and Inductor does not take all of it",
        ),
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


def trained(**how: Any) -> tuple[list[torch.Tensor], Any]:
    """The gradients of a net after a forward and a backward, and the program; eager's without arguments."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.SiLU(), torch.nn.Linear(16, 2)
    )
    program = fairlead.compile(model, backend="ipex", fallback=("eager",), benchmark=False, **how) if how else model
    program(torch.randn(4, 8)).square().sum().backward()
    return [p.grad for p in model.parameters() if p.grad is not None], program


@pytest.mark.parametrize("fuse", [True, False], ids=["by Inductor", "op by op"])
def test_training_is_native(fuse: bool) -> None:
    found, program = trained(options={"fuse": fuse})
    torch.testing.assert_close(found, trained()[0], rtol=1e-5, atol=1e-5)
    assert program.fairlead.placement.native_share == 1
    assert not program.fairlead.placement.declines


def test_without_a_compiler_training_goes_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_worth, "_inductor_is_ready", lambda: False)
    found, program = trained(options={"fuse": True})
    torch.testing.assert_close(found, trained()[0])
    reasons = {d.reason for d in program.fairlead.placement.declines}
    assert reasons == {"nothing is packed in training, and Inductor does not take all of it"}


def test_a_graph_of_training_is_stored_as_others_are() -> None:
    forward = graph(Kind.forward)
    run = backend.load(backend.dump(backend.compile(forward, IpexOptions(), {})), forward, IpexOptions(), {})
    x, w = torch.randn(256, 64), torch.randn(512, 64)
    torch.testing.assert_close(run([x, w])[0], x @ w.T, rtol=1e-4, atol=1e-4)
    with pytest.raises(ArtifactFormatError, match="not what ipex stored of this graph"):
        backend.load(backend.dump(run), graph(), IpexOptions(), {})


def test_what_was_stored_of_another_graph_is_refused() -> None:
    run = backend.compile(graph(), IpexOptions(), {})
    assert backend.load(backend.dump(run), graph(), IpexOptions(), {}).graph == graph()
    with pytest.raises(ArtifactFormatError, match="not what ipex stored of this graph"):
        backend.load(backend.dump(run), graph(passes=1), IpexOptions(), {})
