"""Promises about what becomes a graph."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ._catalogue import Section
from ._through import Through

__all__ = ["PROMISES"]

promise = Section("Graphs")
PROMISES = promise.promises


@promise("A graph break splits a program into graphs")
def breaks(through: Through) -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.tanh(x)
        torch._dynamo.graph_break()
        return torch.tanh(y * 2)

    through.agrees(through.compile(program), program, through.randn(3, 4))
    assert through.kinds == ["inference", "inference"]


@promise("`fullgraph=True` gives one graph, or an error at a break")
def fullgraph(through: Through) -> None:
    net = through.net()
    with torch.no_grad():
        through.agrees(through.compile(net, fullgraph=True), net, through.randn(3, 4))
    assert through.kinds == ["inference"]

    def broken(x: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        through.compile(broken, fullgraph=True)(through.randn(3, 4))


def sizes(through: Through, dynamic: bool | None) -> None:
    net = through.net()
    compiled = through.compile(net, dynamic=dynamic)
    with torch.no_grad():
        for size in (3, 5, 7):
            through.agrees(compiled, net, through.randn(size, 4))


@promise("`dynamic=True`: one graph for all sizes")
def dynamic(through: Through) -> None:
    sizes(through, dynamic=True)
    assert through.kinds == ["inference"]


@promise("`dynamic=False`: a graph for each size")
def static(through: Through) -> None:
    sizes(through, dynamic=False)
    assert through.kinds == ["inference"] * 3


@promise("`dynamic=None`: the second size makes a graph for all others")
def automatic(through: Through) -> None:
    sizes(through, dynamic=None)
    assert through.kinds == ["inference"] * 2


@promise("`mark_dynamic`: one graph for all sizes of that dimension")
def marked(through: Through) -> None:
    net = through.net()
    compiled = through.compile(net)
    with torch.no_grad():
        for size in (3, 5):
            x = through.randn(size, 4)
            torch._dynamo.mark_dynamic(x, 0)
            through.agrees(compiled, net, x)
    assert through.kinds == ["inference"]


@promise("`torch.compiler.disable`: a function runs as it is, between graphs")
def disabled(through: Through) -> None:
    seen: list[type] = []

    @torch.compiler.disable
    def as_it_is(x: Tensor) -> Tensor:
        seen.append(type(x))
        return x * 2

    def program(x: Tensor) -> Tensor:
        return torch.tanh(as_it_is(torch.tanh(x)))

    through.agrees(through.compile(program), program, through.randn(3, 4))
    assert through.kinds == ["inference", "inference"]
    assert seen == [Tensor, Tensor], "neither may be a fake tensor"


@promise("`disallow_in_graph`: an operator stays out of graphs")
def disallowed(through: Through) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.tanh(torch.sub(torch.tanh(x), 1))

    torch._dynamo.disallow_in_graph(torch.sub)
    try:
        through.agrees(through.compile(program), program, through.randn(3, 4))
    finally:
        torch._dynamo.allow_in_graph(torch.sub)
    assert through.kinds == ["inference", "inference"]
    assert {n.op for g in through.graphs for n in g.nodes} == {"aten.tanh.default"}


@torch.compiler.allow_in_graph
def opaque(x: Tensor) -> Tensor:
    return torch.tanh(x) * 2


@promise("`allow_in_graph`: a function that Dynamo does not look into is in the graph")
def allowed(through: Through) -> None:
    def program(x: Tensor) -> Tensor:
        return opaque(x) + 1

    through.agrees(through.compile(program, fullgraph=True), program, through.randn(3, 4))
    assert through.kinds == ["inference"]


@torch.library.custom_op("fairlead_promises::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    return x * 2


@doubled.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


doubled.register_autograd(lambda context, gradient: gradient * 2)


UNKNOWN = {
    **dict.fromkeys(("onnxrt", "openvino"), "has no ONNX lowering"),
    **dict.fromkeys(("openxla", "tvm"), "doubled.default has no rule"),
    "cudagraphs": "may wait for the device",
}


@promise("Custom ops (`torch.library.custom_op`), with their gradients", declined=UNKNOWN)
def custom_op(through: Through) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.tanh(doubled(torch.tanh(x)))

    compiled = through.compile(program, fullgraph=True)
    x = through.randn(3, 4, requires_grad=True)
    found, expected = (torch.autograd.grad(call(x).sum(), x) for call in (compiled, program))
    through.close(found, expected)
    assert through.kinds == ["forward", "backward"]
    assert any(n.op == "fairlead_promises.doubled.default" for n in through.graphs[0].nodes)


@promise("`nested_compile_region`: a block that is called twice")
def nested(through: Through) -> None:
    @torch.compiler.nested_compile_region
    def block(x: Tensor, weight: Tensor) -> Tensor:
        return torch.tanh(x @ weight)

    def program(x: Tensor, weight: Tensor) -> Tensor:
        return block(block(x, weight), weight)

    through.agrees(through.compile(program, fullgraph=True), program, through.randn(3, 4), through.randn(4, 4))
    assert through.kinds == ["inference"]


@promise("What is compiled again is named with the guard that failed")
def recompiled(through: Through) -> None:
    compiled = through.compile(torch.tanh, dynamic=False)
    for size in (3, 5):
        through.agrees(compiled, torch.tanh, through.randn(size, 4))
    (again,) = compiled.fairlead.recompilations
    assert "expected 3, actual 5" in again.reason


@promise("Programs that share a class are no recompilations of each other")
def apart(through: Through) -> None:
    with torch._dynamo.config.patch(recompile_limit=1), torch.no_grad():
        for net in (through.net(), through.net()):
            compiled = through.compile(net)
            through.agrees(compiled, net, through.randn(3, 4))
            assert compiled.fairlead.recompilations == ()
    assert through.kinds == ["inference"] * 2


@promise("Past torch's limit of recompilations results are still right")
def limited(through: Through) -> None:
    with torch._dynamo.config.patch(recompile_limit=1):
        compiled = through.compile(torch.tanh, dynamic=False)
        for size in (3, 5):
            through.agrees(compiled, torch.tanh, through.randn(size, 4))
    assert through.kinds == ["inference"]
