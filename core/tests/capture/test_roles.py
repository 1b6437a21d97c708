"""What inputs and outputs are to the program: names, mutations, aliases, and what training passes on."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairlead.ir import Graph, Kind, Role, Value

from .conftest import Compile


def roles(graph: Graph) -> dict[str, Role]:
    return {i.name: i.role for i in graph.inputs}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3, bias=False))])
        self.table = nn.ParameterDict({"left": nn.Parameter(torch.ones(3))})
        self.register_buffer("scale", torch.ones(3))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.plain = torch.ones(3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x) * self.scale + self.plain - self.hidden * self.table["left"]
        for layer in self.layers:
            x = layer(x)
        return x


def test_parameters_and_buffers_have_their_qualified_names(program: Compile) -> None:
    model = Block().eval()
    run = program(model)
    with torch.no_grad():
        run(torch.ones(2, 3))
    parameter = dict.fromkeys(dict(model.named_parameters()), Role.parameter)
    buffer = dict.fromkeys(dict(model.named_buffers()), Role.buffer)
    other = {"L['x']": Role.user, "L['self'].plain": Role.user}
    assert roles(run.graph) == parameter | buffer | other


def test_training_graphs_have_the_same_names(program: Compile) -> None:
    model = Block()
    run = program(model)
    run(torch.ones(2, 3)).sum().backward()
    forward, backward = run.graphs
    assert (forward.kind, backward.kind) == (Kind.forward, Kind.backward)
    assert {n for n, r in roles(forward).items() if r is Role.parameter} == dict(model.named_parameters()).keys()
    assert {r for n, r in roles(backward).items() if n.startswith("tangents")} == {Role.tangent}
    saved = {i.name: i.role for i in backward.inputs if i.role not in (Role.saved, Role.tangent)}
    assert saved.items() <= roles(forward).items()
    assert saved


def test_a_function_s_weights_are_user_inputs(program: Compile) -> None:
    weight = nn.Parameter(torch.ones(3))
    run = program(lambda x: x * weight)
    with torch.no_grad():
        run(torch.ones(3))
    assert set(roles(run.graph).values()) == {Role.user}


def test_a_weight_that_is_tied_is_one_input(program: Compile) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, index: Tensor) -> Tensor:
            return self.head(self.embed(index))

    run = program(Tied().eval())
    with torch.no_grad():
        run(torch.tensor([1, 2]))
    assert [i.name for i in run.graph.inputs if i.role is Role.parameter] == ["embed.weight"]


def outputs(graph: Graph) -> list[tuple[Role, int | None, int | None]]:
    return [(o.role, o.target, o.aliases) for o in graph.outputs]


def test_a_mutated_input_is_an_output_that_says_which(program: Compile) -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        y.add_(1)
        return x * y

    run = program(f)
    x, y = torch.ones(2), torch.ones(2)
    assert run(x, y).tolist() == [2.0, 2.0]
    assert y.tolist() == [2.0, 2.0]
    target = next(i for i, item in enumerate(run.graph.inputs) if item.name == "L['y']")
    assert outputs(run.graph) == [(Role.mutation, target, None), (Role.user, None, None)]


def test_the_statistics_of_a_batch_norm_are_mutations_in_training(program: Compile) -> None:
    model = nn.BatchNorm1d(3)
    run = program(model)
    run(torch.randn(4, 3)).sum().backward()
    forward, _ = run.graphs
    written = [forward.inputs[o.target].name for o in forward.outputs if o.target is not None]
    assert sorted(written) == ["num_batches_tracked", "running_mean", "running_var"]
    assert model.num_batches_tracked == 1


def test_outputs_of_a_forward_graph_are_the_user_s_and_then_what_the_backward_needs(program: Compile) -> None:
    run = program(lambda x, w: torch.tanh(x @ w))
    run(torch.ones(2, 3), torch.ones(3, 4, requires_grad=True)).sum().backward()
    forward, backward = run.graphs
    listed = [o.role for o in forward.outputs]
    assert listed == [Role.user] + [Role.saved] * (len(listed) - 1)
    assert len(listed) > 1
    assert {o.role for o in backward.outputs} == {Role.gradient}
    # one gradient for each input of the forward graph, none where it needs none
    assert [isinstance(o.value, Value) for o in backward.outputs] == [False, True]


def test_an_output_that_is_a_view_of_an_input_says_so(program: Compile) -> None:
    run = program(lambda x, y: (y.view(-1), x + y, x))
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    view, total, same = run(x, y)
    assert view.data_ptr() == y.data_ptr()
    assert same is x
    names = [None if o.aliases is None else run.graph.inputs[o.aliases].name for o in run.graph.outputs]
    assert total.tolist() == [[2.0] * 3] * 2
    assert [n for n in names if n is not None] in (["L['y']", "L['x']"], ["L['y']"])


def test_an_inference_tensor_is_not_watched(program: Compile) -> None:
    with torch.inference_mode():
        model = nn.Linear(3, 3)
    run = program(model)
    with torch.inference_mode():
        run(torch.ones(2, 3))
    (captured,) = run.recorder.captured
    weight = next(i for i, item in enumerate(captured.graph.inputs) if item.name == "weight")
    assert not captured.watchable(weight)


def test_a_parameter_is_watched(program: Compile) -> None:
    run = program(nn.Linear(3, 3))
    with torch.no_grad():
        run(torch.ones(2, 3))
    (captured,) = run.recorder.captured
    assert all(captured.watchable(i) for i, item in enumerate(captured.graph.inputs) if item.role is Role.parameter)


def test_a_tensor_literal_is_a_constant_with_its_values(program: Compile) -> None:
    run = program(lambda x: x + torch.tensor([1.0, 2.0, 3.0]))
    assert run(torch.zeros(3)).tolist() == [1.0, 2.0, 3.0]
    (captured,) = run.recorder.captured
    ((index, tensor),) = captured.constants.items()
    assert captured.graph.inputs[index].role is Role.constant
    assert index == len(captured.graph.inputs) - 1
    assert tensor.tolist() == [1.0, 2.0, 3.0]


def test_integer_inputs_are_tensors_of_integers(program: Compile) -> None:
    run = program(lambda table, index: table[index] + index.sum())
    table, index = torch.arange(6.0).view(3, 2), torch.tensor([2, 0])
    assert torch.equal(run(table, index), table[index] + index.sum())
    assert [str(i.value.tensor.dtype) for i in run.graph.inputs] == ["f32", "i64"]


def test_an_unused_input_stays(program: Compile) -> None:
    run = program(lambda x, y: x + y.shape[0])
    run(torch.ones(2), torch.ones(3))
    assert "L['x']" in roles(run.graph)


def test_none_among_the_outputs_of_a_backward_graph_stays_in_its_place(program: Compile) -> None:
    run = program(lambda a, b, c: a * b.detach() * c)
    leaves = [torch.ones(2, requires_grad=True) for _ in range(3)]
    run(*leaves).sum().backward()
    forward, backward = run.graphs
    given = {i.name: isinstance(o.value, Value) for i, o in zip(forward.inputs, backward.outputs, strict=True)}
    assert given == {"L['a']": True, "L['b']": False, "L['c']": True}
    assert leaves[1].grad is None
