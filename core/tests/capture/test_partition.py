"""A backward makes views of inputs anew: it reads the inputs themselves, and knows what they are."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from fairlead.ir import DType, Graph, Role, Value

from .conftest import Compile


def inputs(graph: Graph) -> dict[str, Role]:
    return {i.name: i.role for i in graph.inputs if i.role is not Role.tangent}


def test_a_backward_reads_weights_and_not_their_transposes(program: Compile) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    run = program(model)
    run(torch.ones(2, 3)).sum().backward()
    forward, backward = run.graphs
    weight = next(i for i in backward.inputs if i.name == "1.weight")
    assert weight.role is Role.parameter
    assert weight.value.tensor.strides is None
    given = {i.value: i.name for i in forward.inputs}
    saved = [given.get(o.value, "") for o in forward.outputs if o.role is Role.saved and isinstance(o.value, Value)]
    assert sorted(saved) == ["", "1.weight", "L['args'][0]"]  # the first is what the first layer gives


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t().unsqueeze(0),
        lambda x: x.view(3, 2).transpose(0, 1),
        lambda x: x.unsqueeze(0).expand(4, 2, 3),
        lambda x: x.permute(1, 0).unsqueeze(2).squeeze(2).detach(),
    ],
)
def test_a_chain_of_views_of_an_input_is_made_anew(program: Compile, view: Callable[[Tensor], Tensor]) -> None:
    def f(x: Tensor, scale: Tensor) -> Tensor:
        return (view(x) * scale).sin()

    x, scale = torch.arange(6.0).view(2, 3), torch.tensor(2.0, requires_grad=True)
    run = program(f)
    run(x, scale).sum().backward()
    expected = torch.tensor(2.0, requires_grad=True)
    f(x, expected).sum().backward()
    torch.testing.assert_close(scale.grad, expected.grad)
    assert inputs(run.graphs[1])["L['x']"] is Role.user


def test_what_shows_less_than_its_input_is_saved_itself(program: Compile) -> None:
    run = program(lambda x, scale: (x[:1].t() * scale).sin())
    run(torch.ones(1000, 3), torch.tensor(2.0, requires_grad=True)).sum().backward()
    assert "L['x']" not in inputs(run.graphs[1])


def test_an_input_that_is_written_is_read_as_it_is_then(program: Compile) -> None:
    def f(x: Tensor, scale: Tensor) -> Tensor:
        x.add_(1)
        return x.t() * scale

    x, scale = torch.arange(6.0).view(2, 3), torch.tensor(2.0, requires_grad=True)
    program(f)(x, scale).sum().backward()
    assert scale.grad is not None
    assert scale.grad.item() == sum(range(1, 7))


def test_sizes_that_are_symbols_are_there_in_the_backward(program: Compile) -> None:
    def f(x: Tensor, scale: Tensor) -> Tensor:
        return (x.view(x.shape[0] * x.shape[1], -1).t() * scale).sin()

    run = program(f, dynamic=True)
    for rows in (2, 3, 5):
        x, scale = torch.randn(rows, 4, 3), torch.tensor(2.0, requires_grad=True)
        run(x, scale).sum().backward()
        expected = torch.tensor(2.0, requires_grad=True)
        f(x, expected).sum().backward()
        torch.testing.assert_close(scale.grad, expected.grad)
    assert len(run.graphs) == 2


def test_what_is_cheap_is_computed_anew_where_that_is_asked_for(program: Compile) -> None:
    def f(x: Tensor, w: Tensor) -> Tensor:
        return (x @ w).sin().cos().exp().sin()

    saved, grads = [], []
    for recompute in (False, True):
        torch._dynamo.reset()
        w = torch.linspace(0, 1, 12).view(3, 4).requires_grad_()
        run = program(f, recompute=recompute)
        run(torch.linspace(-1, 1, 6).view(2, 3), w).sum().backward()
        saved.append(sum(i.role is Role.saved for i in run.graphs[1].inputs))
        grads.append(w.grad)
    assert saved == [3, 1]
    torch.testing.assert_close(*grads)


def test_a_copy_that_a_product_reads_is_saved_where_the_rest_is_computed_anew(program: Compile) -> None:
    def attention(x: Tensor, w: Tensor) -> Tensor:
        heads = (x @ x.transpose(-2, -1)).softmax(-1) @ x
        return heads.transpose(0, 1).reshape(5, 12) @ w

    saved, grads = [], []
    for recompute in (False, True):
        torch._dynamo.reset()
        x = torch.linspace(-1, 1, 60).view(3, 5, 4).requires_grad_()
        w = torch.linspace(0, 1, 24).view(12, 2).requires_grad_()
        run = program(attention, recompute=recompute)
        run(x, w).sum().backward()
        forward, backward = run.graphs
        made = {r.id: node.op for node in forward.nodes for r in node.results if r is not None}
        values = [o.value for o in forward.outputs if o.role is Role.saved and isinstance(o.value, Value)]
        saved.append([v.tensor.shape for v in values if v.id in made and v.tensor.shape in {(5, 3, 4), (5, 12)}])
        assert "aten.clone.default" not in {node.op for node in backward.nodes}
        grads.append((x.grad, w.grad))
    assert list(map(len, saved)) == [1, 1]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("shape", [(3, 50), (3, 50, 2, 2)])
def test_of_a_softmaxs_logarithm_two_numbers_a_row_are_saved(program: Compile, shape: tuple[int, ...]) -> None:
    classes = torch.arange(math.prod(shape) // shape[1]).view(shape[0], *shape[2:]) % shape[1]

    weight = torch.linspace(-1, 1, 50 * 50).view(50, 50)

    def loss(x: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy((x.half() @ weight.half()).view(shape).float(), classes)

    saved, grads = [], []
    for recompute in (False, True):
        torch._dynamo.reset()
        x = torch.linspace(-1, 1, math.prod(shape)).view(-1, 50).requires_grad_()
        run = program(loss, recompute=recompute)
        run(x).backward()
        read = [i.value.tensor for i in run.graphs[1].inputs if i.role is Role.saved]
        saved.append(sum(t.dtype is DType.f32 and t.shape == shape for t in read))
        grads.append(x.grad)
    assert saved == [1, 0]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize(
    ("affine", "training", "reads"), [(True, True, False), (False, True, True), (True, False, True)]
)
def test_running_statistics_are_saved_for_backwards_that_read_them(
    program: Compile, affine: bool, training: bool, reads: bool
) -> None:
    model = nn.BatchNorm2d(3, affine=affine).train(training)
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    run = program(model)
    run(x).sin().sum().backward()
    forward, backward = run.graphs
    of_forward = [o.value for o in forward.outputs if o.role is Role.mutation]
    assert len(of_forward) == (3 if training else 0)
    saved = [o.value for o in forward.outputs if o.role is Role.saved]
    names = set(inputs(backward))
    read = "running_mean" in names or any(value in of_forward for value in saved)
    assert read is reads


def test_a_layer_norms_bias_is_not_saved_for_a_backward_that_reads_but_its_shape(program: Compile) -> None:
    norm = nn.LayerNorm(5)
    twin = copy.deepcopy(norm)
    run = program(norm)
    x = torch.randn(3, 5)
    run(x).sin().sum().backward()
    twin(x).sin().sum().backward()
    _, backward = run.graphs
    assert "weight" in inputs(backward)
    assert "bias" not in inputs(backward)
    for mine, eagers in zip(norm.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, eagers.grad)
