"""Collectives are nodes of the graph, and what torch hands along with DTensors goes around it. In a group of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import fairlead
from fairlead import ir
from fairlead.errors import IRFormatError
from fairlead.interpret import run as interpret
from fairlead.ir import Builder, DType, Graph, Kind, Role, TensorType, fingerprint

from .conftest import Compile

F32 = TensorType(DType.f32, (4,))


@pytest.fixture
def group() -> Iterator[Any]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def collectives_of(graph: Graph) -> list[str]:
    """Their names, without what waits for them."""
    names = [n.op.split(".")[1] for n in graph.nodes if n.op.startswith("_c10d_functional.")]
    return [name for name in names if name != "wait_tensor"]


def test_collectives_are_nodes_that_name_their_group_and_its_size(program: Compile, group: Any) -> None:
    def gathered(x: Tensor) -> Tensor:
        total = collectives.all_reduce(x * 2, "sum", group)
        return collectives.reduce_scatter_tensor(collectives.all_gather_tensor(total, 0, group), "sum", 0, group) + 1

    run = program(gathered)
    assert run(torch.ones(4)).tolist() == [3.0] * 4
    assert collectives_of(run.graph) == ["all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor"]
    assert run.graph.nodes[1].args[1:] == ("sum", f"{group.group_name}@1")


def test_collectives_that_write_are_captured_as_functions(program: Compile, group: Any) -> None:
    def total(x: Tensor) -> Tensor:
        y = x * 2
        dist.all_reduce(y)
        return y

    run = program(total)
    assert run(torch.ones(4)).tolist() == [2.0] * 4
    assert collectives_of(run.graph) == ["all_reduce"]


def test_what_processes_say_twice_they_say_twice(group: Any) -> None:
    def twice(x: Tensor) -> Tensor:
        collectives.all_reduce(x, "sum", group)
        return collectives.all_reduce(x, "sum", group) + collectives.all_reduce(x, "sum", group)

    compiled = fairlead.compile(twice, backend="eager")
    assert compiled(torch.ones(4)).tolist() == [2.0] * 4
    (graph,) = compiled.fairlead.placement.graphs  # type: ignore[attr-defined]
    assert sum("all_reduce" in n.op for n in graph.nodes) == 3
    torch._dynamo.reset()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())


def test_the_shares_of_a_parallel_module_are_its_parameters(program: Compile, group: Any) -> None:
    mesh = init_device_mesh("cpu", (1,))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel(output_layouts=Shard(0), use_local_output=False)}
    net = parallelize_module(Net(), mesh, plan)
    run = program(net)
    x = torch.randn(2, 4)
    with torch.no_grad():
        found = run(x)
    assert isinstance(found, DTensor)
    torch.testing.assert_close(found.to_local(), net(x).to_local())
    named = {i.name for i in run.graph.inputs if i.role is Role.parameter}
    assert named == {"up.weight", "up.bias", "down.weight", "down.bias"}
    (captured,) = run.recorder.captured
    assert [i.role for k, i in enumerate(run.graph.inputs) if captured.watchable(k)] == [Role.user]


@pytest.mark.parametrize("backend", ["onnxrt", "openvino"])
def test_a_write_to_a_share_is_seen_at_the_next_call(backend: str, group: Any) -> None:
    net = parallelize_module(Net(), init_device_mesh("cpu", (1,)), {"up": ColwiseParallel(), "down": RowwiseParallel()})
    compiled = fairlead.compile(net, backend=backend)
    x = torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), net(x))
            net.up.weight.mul_(2)
    torch._dynamo.reset()


class Counting(torch.nn.Module):
    """Writes to buffers, of which one is shared, and gives that one back."""

    def __init__(self, mesh: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(distribute_tensor(torch.arange(4.0), mesh, [Shard(0)]))
        self.register_buffer("seen", distribute_tensor(torch.zeros(4), mesh, [Shard(0)]))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.calls.add_(1)
        self.seen.mul_(0.5).add_(x)
        return x * self.weight, self.seen


def test_shares_that_are_written_and_those_without_gradients_are_told_apart(program: Compile, group: Any) -> None:
    mesh = init_device_mesh("cpu", (1,))
    module, reference = Counting(mesh), Counting(mesh)
    run = program(module)
    x = distribute_tensor(torch.tensor([1.0, 2.0, 3.0, 4.0]), mesh, [Shard(0)])
    for _ in range(2):
        for each in (run, reference):
            product, seen = each(x)
            product.to_local().sum().backward()
            assert seen.to_local().data_ptr() == (module if each is run else reference).seen.to_local().data_ptr()
    for found, right in zip(module.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(found, right)
    torch.testing.assert_close(module.weight.grad, reference.weight.grad)
    forward, backward = run.graphs
    assert [forward.inputs[o.target].name for o in forward.outputs if o.target is not None] == ["calls", "seen"]
    names = [i.name for i, o in zip(forward.inputs, backward.outputs, strict=True) if o.value is not None]
    assert names == ["weight"]


def test_the_gradients_of_a_parallel_module_are_those_of_its_shares(program: Compile, group: Any) -> None:
    net = parallelize_module(Net(), init_device_mesh("cpu", (1,)), {"up": ColwiseParallel(), "down": RowwiseParallel()})
    run = program(net)
    x = torch.randn(2, 4)
    run(x).sum().backward()
    found = {n: p.grad.to_local() for n, p in net.named_parameters()}  # type: ignore[union-attr]
    net.zero_grad()
    net(x).sum().backward()
    torch.testing.assert_close(found, {n: p.grad.to_local() for n, p in net.named_parameters()})  # type: ignore[union-attr]
    forward, backward = run.graphs
    assert [g.kind for g in run.graphs] == [Kind.forward, Kind.backward]
    types = [i.value.type for i in forward.inputs]
    gradients = [o.value for o in backward.outputs]
    assert len(gradients) == len(types)
    assert all(g.type == t for g, t in zip(gradients, types, strict=True) if isinstance(g, ir.Value))


def graph_of(*groups: str) -> Graph:
    builder = Builder()
    x = builder.input(F32)
    for name in groups:
        x = builder.op("_c10d_functional.all_reduce.default", x, "sum", name, to=x.type)
        x = builder.op("_c10d_functional.wait_tensor.default", x, to=x.type)
    builder.output(x)
    return builder.graph()


def test_ranks_whose_groups_have_other_names_have_the_same_graph() -> None:
    assert fingerprint(graph_of("1@2", "2@2", "1@2")) == fingerprint(graph_of("7@2", "3@2", "7@2"))
    assert fingerprint(graph_of("1", "2", "1")) != fingerprint(graph_of("1", "2", "2"))
    assert fingerprint(graph_of("1@2")) != fingerprint(graph_of("1@4"))


def test_a_graph_runs_in_as_many_processes_as_it_names(group: Any) -> None:
    name = group.group_name
    assert interpret(graph_of(f"{name}@1", name), [torch.ones(4)])[0].tolist() == [1.0] * 4
    with pytest.raises(IRFormatError, match=rf"group '{name}' of _c10d\S+ has 1 processes here, not 2"):
        interpret(graph_of(f"{name}@2"), [torch.ones(4)])
    with pytest.raises(IRFormatError, match=r"group 'tp' of .* does not exist here"):
        interpret(graph_of("tp@1"), [torch.ones(4)])


def test_without_process_groups_a_graph_that_communicates_says_what_it_lacks() -> None:
    with pytest.raises(IRFormatError, match=r"the process group '0' .* does not exist here") as caught:
        interpret(graph_of("0@2"), [torch.ones(4)])
    assert "made their process groups" in caught.value.next


def test_collectives_of_what_is_not_row_major_give_what_is(program: Compile, group: Any) -> None:
    run = program(lambda x: collectives.all_reduce(x.t(), "sum", group) * 2)
    x = torch.arange(6.0).view(2, 3)
    assert torch.equal(run(x), x.t() * 2)
    (total,) = (n.result.tensor for n in run.graph.nodes if "all_reduce" in n.op)
    assert total.strides is None


def test_results_that_are_not_there_yet_are_not_copied(group: Any) -> None:
    builder = Builder()
    turned = TensorType(DType.f32, (3, 2), (1, 3))
    total = builder.op("_c10d_functional.all_reduce.default", builder.input(turned), "sum", group.group_name, to=turned)
    builder.output(builder.op("_c10d_functional.wait_tensor.default", total, to=turned))
    x = torch.arange(6.0).view(2, 3).t()
    module = fairlead.interpret.to_fx(builder.graph())
    waits = [n for n in module.graph.nodes if "wait_tensor" in str(n.target)]
    assert "all_reduce" in str(waits[0].args[0].target)
    assert torch.equal(module(x)[0], x)
